"""Bodies of broadcasts: what is taken, and what is answered."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rest_framework import serializers

from broadcasts import outcomes, words
from broadcasts.drafts import Draft
from broadcasts.findings import Finding
from broadcasts.models import Broadcast, Recipient
from broadcasts.outlook import Outlook
from broadcasts.previews import Preview
from broadcasts.selectors import Tally
from messaging.models import Message
from permissions import ids
from permissions.api.serializers import IntegerField, StrictSerializer, TextField, TimeField


class NothingSerializer(StrictSerializer):
    """A body without fields."""


class DraftSerializer(StrictSerializer):
    """``POST /broadcasts``. Which fields go together is judged by the rules (422), their types here (400)."""

    group_id = TextField(max_length=128)
    template_name = TextField(max_length=512, required=False, allow_null=True)
    language = TextField(max_length=16, default="pt_BR")
    variations = serializers.ListField(
        child=TextField(allow_blank=True, trim_whitespace=False), required=False, allow_null=True
    )
    variables = serializers.DictField(child=TextField(allow_blank=True, trim_whitespace=False), default=dict)
    channel_ids = serializers.ListField(child=TextField(max_length=128), default=list)
    name = TextField(max_length=120, allow_blank=True, default="")
    media_id = TextField(max_length=128, required=False, allow_null=True)
    scheduled_at = TimeField(required=False, allow_null=True)
    expires_at = TimeField(required=False, allow_null=True)

    def draft(self) -> Draft:
        """What was asked for; call it after ``is_valid``."""
        given = self.validated_data
        return Draft(
            group=given["group_id"],
            template_name=given.get("template_name"),
            variations=given.get("variations"),
            variables=given["variables"],
            channels=given["channel_ids"],
            language=given["language"],
            name=given["name"],
            media=given.get("media_id"),
            scheduled_at=given.get("scheduled_at"),
            expires_at=given.get("expires_at"),
        )


class ApprovalSerializer(StrictSerializer):
    """``POST /broadcasts/{id}/approve``: a lone admin types how many recipients it is."""

    confirm_recipients = IntegerField(required=False, allow_null=True, min_value=0)


def accepted(broadcast: Broadcast, tally: Tally, outlook: Outlook, warnings: Iterable[Finding]) -> dict[str, Any]:
    """The answer to the POST."""
    outside = ids.encode(ids.BROADCAST, broadcast.pk)
    return {
        "id": outside,
        "broadcast_id": outside,
        "public_id": broadcast.public_id,
        "status": broadcast.status,
        "total_recipients": tally.total_count,
        "excluded_recipients": tally.counts["excluded"],
        "scheduled_at": broadcast.scheduled_at,
        "expires_at": broadcast.ends_at,
        "estimated_finish_at": outlook.finish_at,
        "warnings": _findings(warnings),
    }


def shown(broadcast: Broadcast, tally: Tally, outlook: Outlook) -> dict[str, Any]:
    """A broadcast in full; its feeds are loaded."""
    outside = ids.encode(ids.BROADCAST, broadcast.pk)
    return {
        "id": outside,
        "broadcast_id": outside,
        "public_id": broadcast.public_id,
        "name": broadcast.name,
        "status": broadcast.status,
        "owner_user_id": ids.encode(ids.USER, broadcast.owner_id),
        "group_id": ids.encode(ids.GROUP, broadcast.group_id),
        "channel_ids": [ids.encode(ids.CHANNEL, feed.channel_id) for feed in broadcast.feeds.all()],
        "template_name": broadcast.template_name or None,
        "language": broadcast.language,
        "variations": broadcast.variations,
        "variables": broadcast.variables,
        "idempotency_key": broadcast.idempotency_key,
        **_figures(tally),
        "waiting_for": _waiting(outlook),
        "estimated_finish_at": outlook.finish_at,
        "failure": _failure(broadcast),
        "created_at": broadcast.created_at,
        "updated_at": broadcast.updated_at,
        "scheduled_at": broadcast.scheduled_at,
        "started_at": broadcast.started_at,
        "finished_at": broadcast.finished_at,
        "expires_at": broadcast.ends_at,
    }


def previewed(preview: Preview) -> dict[str, Any]:
    """What a broadcast would be. Nothing of it exists, so it has no id."""
    broadcast, tally, ahead = preview.broadcast, preview.tally, preview.outlook
    return {
        "status": broadcast.status,
        "group_id": ids.encode(ids.GROUP, broadcast.group_id),
        "channel_ids": [ids.encode(ids.CHANNEL, channel.pk) for channel in preview.channels],
        "total_recipients": tally.total_count,
        "excluded_recipients": tally.counts["excluded"],
        "exclusions": [{"reason": reason, "count": number} for reason, number in preview.exclusions.items()],
        "samples": [
            {
                "contact_id": ids.encode(ids.CONTACT, sample.contact_id),
                "name": sample.name,
                "phone": sample.phone,
                "text": sample.text,
            }
            for sample in preview.samples
        ],
        "plan": [{"date": day, "messages": number} for day, number in ahead.days.items()],
        "too_late_recipients": ahead.too_late,
        "scheduled_at": broadcast.scheduled_at,
        "expires_at": broadcast.ends_at,
        "estimated_finish_at": ahead.finish_at,
        "warnings": _findings(preview.warnings),
        "risks": _findings(preview.risks),
    }


def recipient(person: Recipient, message: Message | None) -> dict[str, Any]:
    """One person of a broadcast."""
    return {"id": ids.encode(ids.RECIPIENT, person.pk), **outcomes.row(person, message)}


def _findings(findings: Iterable[Finding]) -> list[dict[str, str]]:
    return [{"code": finding.code, "detail": finding.detail} for finding in findings]


def _figures(tally: Tally) -> dict[str, Any]:
    return {
        "total_count": tally.total_count,
        "counts": dict(tally.counts),
        "sent_count": tally.sent_count,
        "delivered_count": tally.delivered_count,
        "read_count": tally.read_count,
        "failed_count": tally.failed_count,
    }


def _waiting(outlook: Outlook) -> dict[str, Any] | None:
    wait = outlook.waiting_for
    return None if wait is None else {"code": wait.code, "until": wait.until}


def _failure(broadcast: Broadcast) -> dict[str, str] | None:
    if not broadcast.failure_code:
        return None
    return {"code": broadcast.failure_code, "detail": str(words.failure(broadcast.failure_code))}
