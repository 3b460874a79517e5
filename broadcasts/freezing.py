"""The freeze: who gets a broadcast and who does not, and why, in one statement over the group's lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from uuid import UUID

from django.db import connection

from audience import merging
from audience.selectors import Audience
from broadcasts import variations
from broadcasts.content import NAME, Content
from broadcasts.models import Broadcast, Recipient
from permissions import ids

State = Recipient.State

# A text that may be too long is marked; whether it is, only its rendering tells. Lines left out for anything else
# take no place in a number's share. OFFSET 0 keeps the planner from working out each code once more for the sort.
_FREEZE = r"""
WITH lines AS ({lines}),
judged AS (
  SELECT contact_id, phone, person_name, duplicate_of, place, CASE
      WHEN exclusion <> '' THEN exclusion
      WHEN {lacks} THEN 'missing_variable'
      WHEN {length} > %s THEN 'text_too_long'
      ELSE '' END AS code
  FROM lines OFFSET 0
), shared AS (
  SELECT *, code IN ('', 'text_too_long') AS has_share,
      row_number() OVER (PARTITION BY code IN ('', 'text_too_long') ORDER BY place) AS share
  FROM judged
)
INSERT INTO broadcast_recipients (id, organization_id, broadcast_id, contact_id, channel_id, person_key, phone, name,
    position, message_id, state, code, duplicate_of, updated_at)
SELECT {id}, %s, %s, contact_id,
    CASE WHEN has_share THEN (%s::uuid[])[1 + mod(share - 1, %s)] END,
    coalesce(contact_id::text, ''), phone, person_name, place, {id},
    CASE code WHEN '' THEN 'pending' ELSE 'excluded' END, code, duplicate_of, %s
FROM shared
"""
# An id is the first 24 digits of one drawn for this freeze, and the line's place: as unique, in the order of the
# audience, and without a draw of the system's randomness for each, which took longer than writing the row.
_ID = "(%s || lpad(to_hex(place), 8, '0'))::uuid"
# One value of a line, as ``person`` has it; spelled out for each name, which costs a tenth of a lookup by rows.
_VALUE = "attributes ->> %s::text"
_NAME_VALUE = f"coalesce(nullif(person_name, ''), {_VALUE})"
# The sorts of a hundred thousand lines stay in memory.
_SORT_MEMORY = "SET LOCAL work_mem = '64MB'"
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
    merging.hold_off(broadcast.organization_id)
    lines, parameters = audience.lines(broadcast.group).query.sql_with_params()
    lacks, asked = _lacks(content)
    length, measured = _longest(content)
    parts = {"lines": lines, "lacks": lacks, "length": length, "id": _ID}
    statement = reduce(lambda text, part: text.replace(f"{{{part[0]}}}", part[1]), parts.items(), _FREEZE)
    with connection.cursor() as cursor:
        cursor.execute(_SORT_MEMORY)
        cursor.execute(
            statement,
            [
                *parameters,
                *asked,
                *measured,
                variations.MAX_TEXT,
                ids.new_id().hex[:24],
                broadcast.organization_id,
                broadcast.pk,
                list(channel_ids),
                len(channel_ids),
                ids.new_id().hex[:24],
                broadcast.created_at,
            ],
        )
    _keep_what_fits(broadcast, content)


def _value(name: str) -> str:
    """SQL for a line's value of this name, which is its one parameter."""
    return _NAME_VALUE if name == NAME else _VALUE


def _lacks(content: Content) -> tuple[str, list[str]]:
    """SQL for whether a line lacks a value that the text needs, and its parameters."""
    blank = [rf"coalesce({_value(name)}, '') !~ '\S'" for name in content.required]
    return " OR ".join(blank) or "false", list(content.required)


def _longest(content: Content) -> tuple[str, list[int | str]]:
    """SQL for the length that a line's text has at most, and its parameters."""
    bound = content.bound
    terms: list[str] = ["%s"]
    parameters: list[int | str] = [bound.fixed]
    for name, uses in (bound.uses or {}).items():
        terms.append(f"%s * coalesce(octet_length({_value(name)}), 0)")
        parameters += [uses, name]
    return " + ".join(terms), parameters


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
