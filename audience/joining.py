"""Many people into a group at once: what ``services.add_member`` does for one, by sets."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, connection, transaction

from audience import phones, services
from audience.models import Group
from audience.phones import Phone, PhoneRejected, Reason
from audience.services import ExternalIdTaken
from permissions import ids

_PAGE = 5000

# Who has one of the spellings, or the number itself without any.
_HOLDERS = """
SELECT value, contact_id FROM contact_addresses WHERE organization_id = %s AND kind = 'phone' AND value = ANY (%s)
"""
_NAMED = "SELECT identity, id FROM contacts WHERE organization_id = %s AND identity = ANY (%s)"
_NEW_CONTACTS = """
INSERT INTO contacts (id, organization_id, identity, name, attributes, is_blocked, blocked_reason, is_on_hold,
    created_at, updated_at)
SELECT id, %s, identity, '', '{}', false, '', false, %s, %s
FROM unnest(%s::uuid[], %s::text[]) AS given (id, identity)
ON CONFLICT DO NOTHING
RETURNING identity, id
"""
_NEW_ADDRESSES = """
INSERT INTO contact_addresses (id, organization_id, contact_id, kind, value, created_at)
SELECT id, %s, contact_id, 'phone', value, %s
FROM unnest(%s::uuid[], %s::uuid[], %s::text[]) AS given (id, contact_id, value)
ON CONFLICT DO NOTHING
RETURNING value
"""
# Until the end of the transaction nobody merges them away.
_HOLD = "SELECT id FROM contacts WHERE id = ANY (%s) ORDER BY id FOR KEY SHARE"
_TAKEN = """
SELECT given.external_id FROM unnest(%s::uuid[], %s::text[]) AS given (id, external_id)
JOIN contacts c ON c.organization_id = %s AND c.external_id = given.external_id AND c.id <> given.id
JOIN contacts own ON own.id = given.id AND own.external_id IS NULL
"""
_LEARN = """
UPDATE contacts c SET name = coalesce(nullif(c.name, ''), given.name),
    external_id = coalesce(c.external_id, given.external_id), attributes = c.attributes || given.attributes::jsonb,
    updated_at = %s
FROM unnest(%s::uuid[], %s::text[], %s::text[], %s::text[]) AS given (id, name, external_id, attributes)
WHERE c.id = given.id AND (c.name = '' AND given.name <> '' OR c.external_id IS NULL AND given.external_id IS NOT NULL
    OR NOT c.attributes @> given.attributes::jsonb)
"""
_LINES = """
INSERT INTO group_members AS line (id, organization_id, group_id, contact_id, given_phone, name, status, created_at)
SELECT id, %s, %s, contact_id, given_phone, name, 'ACTIVE', %s
FROM unnest(%s::uuid[], %s::uuid[], %s::text[], %s::text[]) AS given (id, contact_id, given_phone, name)
ON CONFLICT (group_id, given_phone) DO UPDATE
  SET contact_id = excluded.contact_id, status = 'ACTIVE', name = coalesce(nullif(excluded.name, ''), line.name)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line for a group, as it was given."""

    given_phone: str
    name: str = ""
    external_id: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Added:
    """``rejected``: the places in the input, from 0, whose phone is none, and why; their lines have no contact."""

    lines: int
    new_contacts: int
    rejected: Mapping[int, Reason]


@dataclass(frozen=True, slots=True)
class _Entry:
    """A line on its way; its id, drawn in the order of the input, keeps its place in the group."""

    id: UUID
    line: Line
    phone: Phone | None


def add_members(*, group: Group, lines: Iterable[Line], now: datetime) -> Added:
    """Add lines to a group, in their order; of lines with the very same phone the last one counts.

    Each is what ``services.add_member`` makes of it. Pages of some thousands commit by themselves unless the caller
    has a transaction; adding the same again changes nothing. Raises ExternalIdTaken, which names the ids.
    """
    entries, rejected = _read(group, lines)
    new_contacts = 0
    # By identity, so that two imports of the same people wait for each other in one order.
    ordered = sorted(entries, key=lambda entry: entry.phone.identity if entry.phone else "")
    for start in range(0, len(ordered), _PAGE):
        with transaction.atomic():
            new_contacts += _add_page(group, ordered[start : start + _PAGE], now)
    return Added(len(entries), new_contacts, rejected)


def _read(group: Group, lines: Iterable[Line]) -> tuple[list[_Entry], dict[int, Reason]]:
    region = group.organization.region
    entries: dict[str, _Entry] = {}
    rejected: dict[int, Reason] = {}
    for place, line in enumerate(lines):
        phone: Phone | None = None
        try:
            phone = phones.parse(line.given_phone, region=region)
        except PhoneRejected as rejection:
            rejected[place] = rejection.reason
        earlier = entries.get(line.given_phone)
        entries[line.given_phone] = _Entry(earlier.id if earlier else ids.new_id(), line, phone)
    return list(entries.values()), rejected


def _add_page(group: Group, page: Sequence[_Entry], now: datetime) -> int:
    wanted = {entry.phone.identity: entry.phone for entry in page if entry.phone}
    contacts, created = _contacts(group, wanted, now)
    reached = [(contacts[entry.phone.identity], entry.line) for entry in page if entry.phone]
    _learn(group, reached, now)
    _run(
        _LINES,
        group.organization_id,
        group.pk,
        now,
        [entry.id for entry in page],
        [contacts[entry.phone.identity] if entry.phone else None for entry in page],
        [entry.line.given_phone for entry in page],
        [entry.line.name for entry in page],
    )
    return created


def _contacts(group: Group, wanted: Mapping[str, Phone], now: datetime) -> tuple[dict[str, UUID], int]:
    """The contact of each identity, held until the end of the transaction; how many were new."""
    holders, spelled = _holders(group, wanted)
    missing = [identity for identity, contacts in holders.items() if not contacts]
    drawn = [ids.new_id() for _ in missing]
    fresh = dict(_run(_NEW_CONTACTS, group.organization_id, now, now, drawn, missing))
    known = {identity: min(contacts) for identity, contacts in holders.items() if len(contacts) == 1}
    held = {key for (key,) in _run(_HOLD, list(known.values()))}
    settled = {**fresh, **{identity: key for identity, key in known.items() if key in held}}
    contested = _spell(group, settled, wanted, spelled, now)
    # Whoever shares a spelling, was merged away or is being written by another is looked at by himself.
    for identity in (identity for identity in wanted if identity not in settled or identity in contested):
        contact = services.contact_for_phone(organization=group.organization, phone=wanted[identity], now=now)
        settled[identity] = contact.pk
    return settled, len(fresh)


def _holders(group: Group, wanted: Mapping[str, Phone]) -> tuple[dict[str, set[UUID]], set[str]]:
    """Who has any spelling of each identity (more than one where contacts are still to be merged), and those found."""
    identity_of = {spelling: phone.identity for phone in wanted.values() for spelling in phone.variants}
    found: dict[str, set[UUID]] = {identity: set() for identity in wanted}
    spelled = _run(_HOLDERS, group.organization_id, list(identity_of))
    for value, contact_id in spelled:
        found[identity_of[value]].add(contact_id)
    for identity, contact_id in _run(_NAMED, group.organization_id, list(wanted)):
        found[identity].add(contact_id)
    return found, {value for value, _contact_id in spelled}


def _spell(
    group: Group, contacts: Mapping[str, UUID], wanted: Mapping[str, Phone], spelled: set[str], now: datetime
) -> set[str]:
    """Write down the spellings that nobody had; the identities of which somebody else was first with one."""
    # In one order everywhere, so that two writers never wait for each other.
    new = sorted(
        (spelling, identity)
        for identity in contacts
        for spelling in wanted[identity].variants
        if spelling not in spelled
    )
    written = _run(
        _NEW_ADDRESSES,
        group.organization_id,
        now,
        [ids.new_id() for _ in new],
        [contacts[identity] for _spelling, identity in new],
        [spelling for spelling, _identity in new],
    )
    ours = {value for (value,) in written}
    return {identity for spelling, identity in new if spelling not in ours}


def _learn(group: Group, reached: Sequence[tuple[UUID, Line]], now: datetime) -> None:
    """Fill in names and external ids that were missing, and set attributes."""
    known: dict[UUID, Line] = {}
    for contact_id, line in reached:
        known[contact_id] = _together(known[contact_id], line) if contact_id in known else line
    telling = {key: line for key, line in known.items() if line.name or line.external_id or line.attributes}
    if not telling:
        return
    keys, lines = list(telling), list(telling.values())
    external_ids = [line.external_id for line in lines]
    if taken := _run(_TAKEN, keys, external_ids, group.organization_id):
        raise ExternalIdTaken([external_id for (external_id,) in taken])
    names, attributes = [line.name for line in lines], [json.dumps(dict(line.attributes)) for line in lines]
    try:
        _run(_LEARN, now, keys, names, external_ids, attributes)
    except IntegrityError as error:
        named = Counter(filter(None, external_ids))
        raise ExternalIdTaken([external_id for external_id, times in named.items() if times > 1]) from error


def _together(earlier: Line, later: Line) -> Line:
    """Two lines of one person, as if one were added after the other."""
    return replace(
        earlier,
        name=earlier.name or later.name,
        external_id=earlier.external_id or later.external_id,
        attributes={**earlier.attributes, **later.attributes},
    )


def _run(statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall() if cursor.description else []
