"""Many people into a group: by sets, and one by one."""

from __future__ import annotations

import time

from django.utils import timezone

from audience import joining, services
from audience.joining import Line
from audience.models import GroupMember
from bench.figures import Figure, WrongResult
from bench.options import Options
from bench.shop import open_shop

# Enough to know the rate of a way that takes a hundred times as long.
_ONE_BY_ONE = 300


def run(options: Options) -> list[Figure]:
    people = max(options.people // 4, 1)
    shop = open_shop("joining")
    group, single = shop.empty_group("many"), shop.empty_group("single")
    began = time.perf_counter()
    joining.add_members(group=group, lines=_lines(people, "21"), now=timezone.now())
    by_sets = people / (time.perf_counter() - began)
    began = time.perf_counter()
    for line in _lines(_ONE_BY_ONE, "31"):
        services.add_member(
            group=single, given_phone=line.given_phone, now=timezone.now(), name=line.name, attributes=line.attributes
        )
    one_by_one = _ONE_BY_ONE / (time.perf_counter() - began)
    found = GroupMember.objects.of(shop.organization).filter(group=group, contact__addresses__isnull=False)
    if found.distinct().count() != people:
        raise WrongResult("not every line has its contact")
    return [
        Figure(
            what=f"{people:,} new people into a group",
            unit="person",
            ours=by_sets,
            against="one by one",
            theirs=one_by_one,
            floor=5.0,
        )
    ]


def _lines(number: int, area: str) -> list[Line]:
    return [
        Line(given_phone=f"+55{area}9{80000000 + place}", name=f"Pessoa {place}", attributes={"cidade": place % 50})
        for place in range(number)
    ]
