"""The freeze of a whole audience, beside a COPY of the very same rows into the same table."""

from __future__ import annotations

import time
from collections import Counter

from django.utils import timezone

from audience.models import Group
from bench import owner
from bench.figures import Figure, WrongResult, by_turns, median_rates
from bench.options import Options
from bench.shop import Shop, open_shop
from broadcasts import outlook, selectors, services
from broadcasts.models import Broadcast, Recipient
from messaging import streams
from messaging.models import Channel

_COLUMNS = [str(field.column) for field in Recipient._meta.local_concrete_fields]
# The ids are another broadcast's, since they are unique in the table.
_ANEW = {"id": "uuid7()", "message_id": "uuid7()", "broadcast_id": "'{broadcast}'::uuid"}


def run(options: Options) -> list[Figure]:
    bench = _Bench(options.people)
    seconds = by_turns(options.rounds, {"compose": bench.compose, "copy": bench.copy})
    checked = bench.check()
    return [
        Figure(
            what=f"freeze of {options.people:,} lines (the whole POST's work)",
            unit="row",
            ours=median_rates(options.people, seconds["compose"]),
            against="COPY of the same rows",
            theirs=median_rates(options.people, seconds["copy"]),
            floor=0.5,
            checked=checked,
        )
    ]


class _Bench:
    def __init__(self, people: int) -> None:
        self.people = people
        self.shop: Shop = open_shop("freeze")
        self.channels: list[Channel] = [self.shop.number(f"n{number}") for number in range(3)]
        self.group: Group = self.shop.group("freeze", people=people)
        self.frozen: list[Broadcast] = [self._compose()]

    def compose(self) -> float:
        """All that the POST does but HTTP: judge, freeze, commit, count, estimate."""
        began = time.perf_counter()
        broadcast = self._compose()
        outlook.outlooks([broadcast], {broadcast.pk: selectors.tally(broadcast)}, timezone.now())
        took = time.perf_counter() - began
        self.frozen.append(broadcast)
        return took

    def copy(self) -> float:
        """A COPY of as many rows under a broadcast of their own, with the same indexes and constraints."""
        data = self._rows()
        with owner.connected() as connection:
            began = time.perf_counter()
            with connection.transaction():
                owner.copy_in(connection, "broadcast_recipients", _COLUMNS, data)
            return time.perf_counter() - began

    def check(self) -> str:
        """Each freeze left out whom it had to, and counted everybody. Raises WrongResult."""
        wanted = _wanted(self.people)
        for broadcast in self.frozen:
            rows = Recipient.objects.of(self.shop.organization).filter(broadcast=broadcast)
            found = Counter(rows.values_list("code", flat=True))
            if found != wanted:
                raise WrongResult(f"frozen: {dict(found)}, wanted: {dict(wanted)}")
        left_out = ", ".join(f"{code} {number}" for code, number in sorted(wanted.items()) if code)
        return f"in each freeze {wanted['']} included; left out: {left_out}"

    def _compose(self) -> Broadcast:
        draft = self.shop.draft(self.group, self.channels)
        return services.compose(
            organization=self.shop.organization, owner=self.shop.leader, draft=draft, now=timezone.now()
        )

    def _rows(self) -> bytes:
        """The first freeze's rows as COPY writes them, for a broadcast that has none yet."""
        now = timezone.now()
        stream = streams.create(organization_id=self.shop.organization.pk, expires_at=None, now=now)
        empty = Broadcast.objects.create(
            organization=self.shop.organization,
            owner=self.shop.leader,
            group=self.group,
            stream=stream,
            status=Broadcast.Status.CANCELED,
        )
        columns = ", ".join(_ANEW.get(column, column).format(broadcast=empty.pk) for column in _COLUMNS)
        query = f"SELECT {columns} FROM broadcast_recipients WHERE broadcast_id = %s ORDER BY position"  # noqa: S608 - columns of the model
        with owner.connected() as connection:
            return owner.copied_out(connection, query, [self.frozen[0].pk])


def _wanted(people: int) -> Counter[str]:
    """What bench.shop's lines come to."""
    reasons = {1: "invalid_phone", 2: "duplicate", 3: "opted_out", 5: "missing_variable"}
    codes = Counter(reasons.get(place % 50, "") for place in range(people))
    for remainder, code in ((4, "contact_on_hold"), (6, "text_too_long")):
        number = sum(place % 100 == remainder for place in range(people))
        codes[code] += number
        codes[""] -= number
    return +codes
