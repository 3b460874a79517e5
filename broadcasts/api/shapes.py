"""What broadcasts look like from outside, for the schema. The answers themselves are made in ``serializers``."""

from __future__ import annotations

from rest_framework import serializers

from broadcasts import selectors
from broadcasts.codes import FailureCode, RiskCode, WaitingCode, WarningCode
from broadcasts.models import Broadcast, Recipient
from messaging import codes
from permissions import ids
from permissions.api.serializers import PrefixedIdField


class Counts(serializers.Serializer[None]):
    """Exclusive: each person is in one. They sum to ``total_count`` and the excluded."""

    def get_fields(self) -> dict[str, serializers.Field]:  # type: ignore[type-arg]
        return {word: serializers.IntegerField(min_value=0) for word in selectors.WORDS}


class Warned(serializers.Serializer[None]):
    code = serializers.ChoiceField([*WarningCode, *RiskCode])
    detail = serializers.CharField()


class Risk(serializers.Serializer[None]):
    code = serializers.ChoiceField(list(RiskCode))
    detail = serializers.CharField()


class Failure(serializers.Serializer[None]):
    """Nothing was sent, and nothing can be."""

    code = serializers.ChoiceField(list(FailureCode))
    detail = serializers.CharField()


class Accepted(serializers.Serializer[None]):
    id = PrefixedIdField(ids.BROADCAST)
    broadcast_id = PrefixedIdField(ids.BROADCAST)
    public_id = serializers.CharField()
    status = serializers.ChoiceField(Broadcast.Status.values)
    total_recipients = serializers.IntegerField(min_value=0)
    excluded_recipients = serializers.IntegerField(min_value=0)
    scheduled_at = serializers.DateTimeField(allow_null=True)
    expires_at = serializers.DateTimeField()
    estimated_finish_at = serializers.DateTimeField(allow_null=True)
    warnings = Warned(many=True)


class Excluded(serializers.Serializer[None]):
    reason = serializers.ChoiceField(Recipient.Exclusion.values)
    count = serializers.IntegerField(min_value=1)


class Sample(serializers.Serializer[None]):
    contact_id = PrefixedIdField(ids.CONTACT)
    name = serializers.CharField(allow_blank=True)
    phone = serializers.CharField()
    text = serializers.CharField()


class Day(serializers.Serializer[None]):
    """How many messages leave on a day of the organization's time zone, were every number connected."""

    date = serializers.DateField()
    messages = serializers.IntegerField(min_value=1)


class Previewed(serializers.Serializer[None]):
    """A broadcast that was not made. ``too_late_recipients``: who would not get their turn before its end."""

    status = serializers.ChoiceField(
        [Broadcast.Status.QUEUED, Broadcast.Status.SCHEDULED, Broadcast.Status.PENDING_REVIEW]
    )
    group_id = PrefixedIdField(ids.GROUP)
    channel_ids = serializers.ListField(child=PrefixedIdField(ids.CHANNEL))
    total_recipients = serializers.IntegerField(min_value=0)
    excluded_recipients = serializers.IntegerField(min_value=0)
    exclusions = Excluded(many=True)
    samples = Sample(many=True)
    plan = Day(many=True)
    too_late_recipients = serializers.IntegerField(min_value=0)
    scheduled_at = serializers.DateTimeField(allow_null=True)
    expires_at = serializers.DateTimeField()
    estimated_finish_at = serializers.DateTimeField(allow_null=True)
    warnings = Warned(many=True)
    risks = Risk(many=True)


class Waiting(serializers.Serializer[None]):
    code = serializers.ChoiceField(list(WaitingCode))
    until = serializers.DateTimeField(allow_null=True)


class Shown(serializers.Serializer[None]):
    """A broadcast in full. ``sent_count`` and its kin are cumulative: a read message was sent and delivered."""

    id = PrefixedIdField(ids.BROADCAST)
    broadcast_id = PrefixedIdField(ids.BROADCAST)
    public_id = serializers.CharField()
    name = serializers.CharField(allow_blank=True)
    status = serializers.ChoiceField(Broadcast.Status.values)
    owner_user_id = PrefixedIdField(ids.USER)
    group_id = PrefixedIdField(ids.GROUP)
    channel_ids = serializers.ListField(child=PrefixedIdField(ids.CHANNEL))
    template_name = serializers.CharField(allow_null=True)
    language = serializers.CharField()
    variations = serializers.ListField(child=serializers.CharField())
    variables = serializers.DictField(child=serializers.CharField(allow_blank=True))
    idempotency_key = serializers.CharField(allow_null=True)
    total_count = serializers.IntegerField(min_value=0)
    counts = Counts()
    sent_count = serializers.IntegerField(min_value=0)
    delivered_count = serializers.IntegerField(min_value=0)
    read_count = serializers.IntegerField(min_value=0)
    failed_count = serializers.IntegerField(min_value=0)
    waiting_for = Waiting(allow_null=True)
    estimated_finish_at = serializers.DateTimeField(allow_null=True)
    failure = Failure(allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    scheduled_at = serializers.DateTimeField(allow_null=True)
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)
    expires_at = serializers.DateTimeField()


class Person(serializers.Serializer[None]):
    """One person of a broadcast. A message in doubt reads ``failed`` with ``outcome_unknown``."""

    id = PrefixedIdField(ids.RECIPIENT)
    recipient_id = PrefixedIdField(ids.RECIPIENT)
    user_id = serializers.CharField(allow_null=True, allow_blank=True)
    contact_id = PrefixedIdField(ids.CONTACT, allow_null=True)
    phone = serializers.CharField(allow_blank=True)
    message_id = PrefixedIdField(ids.MESSAGE, allow_null=True)
    wa_message_id = serializers.CharField(allow_null=True)
    status = serializers.ChoiceField([word for word in selectors.WORDS if word != "in_doubt"])
    error_detail = serializers.CharField(allow_null=True)
    exclusion = serializers.ChoiceField(Recipient.Exclusion.values, allow_null=True)
    attempts = serializers.IntegerField(min_value=0)
    updated_at = serializers.DateTimeField()

    def get_fields(self) -> dict[str, serializers.Field]:  # type: ignore[type-arg]
        error_code = serializers.ChoiceField(codes.all_codes(), allow_null=True)
        return {**super().get_fields(), "error_code": error_code}


# What a body of POST /broadcasts may be refused for, beside its fields.
COMPOSING = {
    403: ("group_forbidden",),
    404: ("group_not_found", "channel_not_found"),
    422: (
        "content_required",
        "content_ambiguous",
        "channel_required",
        "min_5_variations_required",
        "invalid_variation",
        "variations_too_similar",
        "template_not_approved",
        "template_variables_mismatch",
        "empty_audience",
        "channel_in_warmup",
        "channel_reserved",
        "daily_limit_exceeded",
        "media_not_supported",
        "scheduled_in_past",
        "scheduled_too_late",
        "expires_in_past",
        "expires_before_start",
        "expires_too_late",
        "expires_before_window",
    ),
}
# What a move is refused for.
MOVING = {403: ("permission_denied", "group_forbidden"), 409: ("invalid_transition",)}
APPROVING = {
    403: ("permission_denied", "another_admin_required"),
    409: ("invalid_transition",),
    422: ("confirmation_required",),
}
READING = {403: ("permission_denied",)}
