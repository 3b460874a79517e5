"""Commands about one number: audited, and errors that name the argument."""

from __future__ import annotations

from datetime import date, time
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from events.models import Event
from permissions import ids
from permissions.models import User
from tests.messaging.conftest import Lab

pytestmark = pytest.mark.django_db


@pytest.fixture
def root() -> User:
    return User.objects.create_superuser("root")


def options(lab: Lab, **given: Any) -> dict[str, Any]:
    return {"channel": ids.encode(ids.CHANNEL, lab.channel.pk), "reason": "número de 2019", "by": "root", **given}


def run(name: str, given: dict[str, Any]) -> None:
    channel = given.pop("channel")
    call_command(name, channel, **given)


def test_an_age_is_declared_and_audited(lab: Lab, root: User) -> None:
    run("declare_age", options(lab, since="2019-05-01"))
    lab.channel.refresh_from_db()
    assert lab.channel.in_use_since == date(2019, 5, 1)
    event = Event.objects.get(type="limit.loosened")
    assert (event.actor, event.data["to"]) == (ids.encode(ids.USER, root.pk), "2019-05-01")


def test_a_window_is_set_and_audited(lab: Lab, root: User) -> None:
    run("set_window", options(lab, opens="08:00", closes="20:30"))
    lab.channel.refresh_from_db()
    assert (lab.channel.window_opens, lab.channel.window_closes) == (time(8), time(20, 30))
    assert Event.objects.get(type="limit.loosened").data["limit"] == "window"


@pytest.mark.parametrize(
    ("command", "given", "name"),
    [
        ("declare_age", {"since": "ontem"}, "--since"),
        ("declare_age", {"since": "2999-01-01"}, "--since"),
        ("declare_age", {"since": "2019-05-01", "by": "ninguém"}, "--by"),
        ("declare_age", {"since": "2019-05-01", "channel": "ch_x"}, "CHANNEL"),
        ("declare_age", {"since": "2019-05-01", "reason": " "}, "--reason"),
        ("set_window", {"opens": "8h", "closes": "20:00"}, "--opens"),
        ("set_window", {"opens": "08:00", "closes": "25:00"}, "--closes"),
        ("set_window", {"opens": "07:00+03:00", "closes": "20:00"}, "--opens"),
        ("set_window", {"opens": "07:00:30", "closes": "20:00"}, "--opens"),
    ],
)
def test_a_wrong_argument_is_named(lab: Lab, root: User, command: str, given: dict[str, Any], name: str) -> None:
    with pytest.raises(CommandError, match=name):
        run(command, options(lab, **given))
    assert not Event.objects.filter(type="limit.loosened").exists()
