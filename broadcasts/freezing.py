"""The freeze: who gets a broadcast and who does not, and why, in one statement over the group's lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from uuid import UUID

from django.db import connection

from audience.selectors import Audience
from broadcasts import variations
from broadcasts.content import NAME, Content
from broadcasts.models import Broadcast, Recipient

State = Recipient.State

# A text that may be too long is marked; whether it is, only its rendering tells. Lines left out for anything else
# take no place in a number's share.
_FREEZE = r"""
WITH lines AS ({lines}),
people AS (SELECT *, {person} AS person FROM lines),
judged AS (
  SELECT *, CASE
      WHEN exclusion <> '' THEN exclusion
      WHEN EXISTS (SELECT 1 FROM unnest(%s::text[]) AS required (name)
                   WHERE coalesce(person ->> required.name, '') !~ '\S') THEN 'missing_variable'
      WHEN %s + coalesce((SELECT sum(uses * coalesce(octet_length(person ->> used.name), 0))
                          FROM unnest(%s::text[], %s::integer[]) AS used (name, uses)), 0) > %s THEN 'text_too_long'
      ELSE '' END AS code
  FROM people
), shared AS (
  SELECT *, code IN ('', 'text_too_long') AS has_share,
      row_number() OVER (PARTITION BY code IN ('', 'text_too_long') ORDER BY place) AS share
  FROM judged
)
INSERT INTO broadcast_recipients (id, organization_id, broadcast_id, contact_id, channel_id, person_key, phone, name,
    position, message_id, state, code, duplicate_of, updated_at)
SELECT uuid7(), %s, %s, contact_id,
    CASE WHEN has_share THEN (%s::uuid[])[1 + mod(share - 1, %s)] END,
    coalesce(contact_id::text, ''), phone, person_name, place, uuid7(),
    CASE code WHEN '' THEN 'pending' ELSE 'excluded' END, code, duplicate_of, %s
FROM shared
"""
_SUSPECTS = """
SELECT r.id, {person}
FROM broadcast_recipients r JOIN contacts c ON c.id = r.contact_id
WHERE r.broadcast_id = %s AND r.code = 'text_too_long'
"""
_BATCH = 2000


def person(name: str, attributes: str) -> str:
    """SQL for what a text may ask of a person, as a JSON object of texts; its parameter is a list of names.

    ``nome`` is the name, and only where there is none an attribute. Takes two columns.
    """
    return f"""(
      SELECT coalesce(json_object_agg(asked, value), '{{}}'::json) FROM (
        SELECT asked, CASE asked WHEN '{NAME}' THEN coalesce(nullif({name}, ''), {attributes} ->> asked)
                                 ELSE {attributes} ->> asked END AS value
        FROM unnest(%s::text[]) AS names (asked)) AS answers
      WHERE value IS NOT NULL)"""  # noqa: S608 - columns named in this room


def freeze(broadcast: Broadcast, content: Content, audience: Audience, channel_ids: Sequence[UUID]) -> None:
    """Write the recipients of a new broadcast; the included ones take turns over its numbers.

    Runs in the caller's transaction. One person is included once, by the earliest of his lines.
    """
    lines, parameters = audience.lines(broadcast.group).query.sql_with_params()
    bound = content.bound
    uses = bound.uses or {}
    with connection.cursor() as cursor:
        cursor.execute(
            _FREEZE.replace("{lines}", lines).replace("{person}", person("person_name", "attributes")),
            [
                *parameters,
                content.personal,
                content.required,
                bound.fixed,
                list(uses),
                list(uses.values()),
                variations.MAX_TEXT,
                broadcast.organization_id,
                broadcast.pk,
                list(channel_ids),
                len(channel_ids),
                broadcast.created_at,
            ],
        )
    _keep_what_fits(broadcast, content)


def _keep_what_fits(broadcast: Broadcast, content: Content) -> None:
    """Include those whose text might have been too long, and is not. Most broadcasts have none to look at."""
    fitting = [
        recipient_id
        for recipient_id, values in _suspects(broadcast, content)
        if _fits(content, broadcast.pk, recipient_id, values)
    ]
    for start in range(0, len(fitting), _BATCH):
        Recipient.objects.of(broadcast.organization_id).filter(pk__in=fitting[start : start + _BATCH]).update(
            state=State.PENDING, code=""
        )


def _suspects(broadcast: Broadcast, content: Content) -> Iterator[tuple[UUID, dict[str, str]]]:
    statement = _SUSPECTS.replace("{person}", person("r.name", "c.attributes"))
    with connection.cursor() as cursor:
        cursor.execute(statement, [content.personal, broadcast.pk])
        while rows := cursor.fetchmany(_BATCH):
            yield from rows


def _fits(content: Content, broadcast_id: UUID, recipient_id: UUID, values: dict[str, str]) -> bool:
    try:
        text = content.text_for(broadcast_id=broadcast_id, recipient_id=recipient_id, person=values)
    except variations.MissingVariable:
        # Blank to the eye though not to SQL: the feed leaves such a person out when his turn comes.
        return True
    return variations.text_length(text) <= variations.MAX_TEXT
