"""From nothing to a number that works, and back: our side and a simulated WAHA, each over HTTP."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from pytest_django.fixtures import Settings

from channels_waha import client, gateway, lifecycle, services, syncing
from channels_waha.lifecycle import SessionBusy
from channels_waha.management.commands import pair_number
from channels_waha.models import ChannelSession
from events.models import Event
from messaging import apply, cron
from messaging import services as messaging
from messaging.adapters import ChannelError
from messaging.models import Channel, CronRun, WebhookEvent
from permissions import ids
from tests import waiting
from tests.channels_waha.conftest import database_now, delete_session, lane_of, state_of
from tests.factories import OrganizationFactory
from tests.simulator_client import SimulatorControl, SimulatorProcess

pytestmark = pytest.mark.django_db(transaction=True)

PHONE = "5511999990001"


@pytest.fixture
def session(transactional_db: None, make_session: Callable[..., ChannelSession]) -> ChannelSession:
    return make_session()


def status_of(session: ChannelSession) -> str:
    """As our row says, once all webhooks of now are applied."""
    apply.apply_channel(session.channel_id, now=database_now())
    session.refresh_from_db()
    return session.status


def wait_for(session: ChannelSession, status: str) -> None:
    assert waiting.until(lambda: status_of(session) == status), session.status


def paired(session: ChannelSession, waha: SimulatorControl) -> ChannelSession:
    lifecycle.connect(session)
    waha.pair(session.session_name, phone=PHONE)
    wait_for(session, "WORKING")
    return session


def moves(session: ChannelSession) -> list[str]:
    found = Event.objects.filter(type="channel_session.status_changed").order_by("created_at", "id")
    return [event.data["to"] for event in found if event.data["session_name"] == session.session_name]


def test_a_number_is_paired_and_its_lane_opens(session: ChannelSession, waha: SimulatorControl) -> None:
    lifecycle.connect(session)
    wait_for(session, "SCAN_QR_CODE")
    assert lifecycle.qr_png(session).startswith(b"\x89PNG")
    # It changes every few moments.
    assert waiting.until(lambda: lifecycle.qr_value(session) == waha.session(session.session_name)["qr"])
    assert lane_of(session)["connected"] is False
    waha.scan(session.session_name, phone=PHONE)
    wait_for(session, "WORKING")
    assert session.phone_number == f"+{PHONE}"
    assert (session.server_version, session.engine, session.is_wanted) == ("2026.7.1", "NOWEB", True)
    assert (lane_of(session)["connected"], state_of(session)) == (True, Channel.State.CONNECTED)
    assert moves(session)[-1] == "WORKING"
    assert "SCAN_QR_CODE" in moves(session)
    first = Channel.unscoped.get(pk=session.channel_id).first_connected_at
    assert first is not None
    # It was told by webhook, signed with the session's own secret.
    kinds = set(WebhookEvent.objects.values_list("event_type", "state"))
    assert ("session.status", "applied") in kinds


def test_connecting_again_leaves_a_working_session_alone(session: ChannelSession, waha: SimulatorControl) -> None:
    paired(session, waha)
    moved = len(moves(session))
    found = lifecycle.connect(session)
    assert found.status == "WORKING"
    assert len(moves(session)) == moved


def test_another_address_of_ours_is_put_and_the_rest_stays(
    session: ChannelSession, waha: SimulatorControl, settings: Settings
) -> None:
    paired(session, waha)
    server = client.default_server()
    before = gateway.read(server, session.session_name)
    assert before is not None
    assert before.config is not None
    theirs = {"url": "http://127.0.0.1:9/theirs", "events": ["session.status"]}
    hooks = [*before.config["webhooks"], theirs]
    gateway.update(server, session.session_name, before.config | {"webhooks": hooks, "debug": False})
    settings.WEBHOOK_BASE_URL = "http://127.0.0.1:9"
    lifecycle.connect(session)
    after = gateway.read(server, session.session_name)
    assert after is not None
    assert after.config is not None
    urls = [hook["url"] for hook in after.config["webhooks"]]
    assert urls == [f"http://127.0.0.1:9/api/v1/webhooks/waha/{session.session_name}", theirs["url"]]
    assert after.config["debug"] is False


def test_a_failed_session_is_restarted_by_hand(session: ChannelSession, waha: SimulatorControl) -> None:
    paired(session, waha)
    waha.unlink(session.session_name, revoke=False)
    wait_for(session, "FAILED")
    assert lane_of(session)["connected"] is False
    lifecycle.connect(session)
    wait_for(session, "WORKING")
    assert lane_of(session)["connected"] is True


def test_an_unlinked_phone_is_linked_again(session: ChannelSession, waha: SimulatorControl) -> None:
    paired(session, waha)
    waha.unlink(session.session_name)
    wait_for(session, "FAILED")
    lifecycle.relink(session)
    waha.pair(session.session_name, phone="5521988880000")
    wait_for(session, "WORKING")
    assert lane_of(session)["holds"] == ["phone_changed"]


def test_one_call_at_a_time(session: ChannelSession, waha: SimulatorControl) -> None:
    held, over = threading.Event(), threading.Event()

    def hold() -> None:
        with lifecycle._alone(session):
            held.set()
            over.wait(10)
        connection.close()

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(10)
    with pytest.raises(SessionBusy):
        lifecycle.connect(session)
    over.set()
    thread.join()
    lifecycle.connect(session)


def test_an_unreachable_waha_leaves_a_session_that_can_be_tried_again(
    session: ChannelSession, settings: Settings, waha: SimulatorControl
) -> None:
    reachable = settings.WAHA_BASE_URL
    settings.WAHA_BASE_URL = "http://127.0.0.1:9"
    with pytest.raises(ChannelError, match="waha_refused"):
        lifecycle.connect(session)
    session.refresh_from_db()
    assert (session.status, session.is_wanted) == ("STOPPED", True)
    settings.WAHA_BASE_URL = reachable
    syncing.sync_sessions()
    wait_for(session, "SCAN_QR_CODE")


class TestSync:
    """sync-sessions."""

    def test_a_session_stopped_behind_our_back_is_noticed_and_started(
        self, session: ChannelSession, waha: SimulatorControl
    ) -> None:
        paired(session, waha)
        gateway.stop(client.default_server(), session.session_name)
        # As if the webhook of it had been lost.
        WebhookEvent.objects.all().delete()
        before = len(moves(session))
        run = syncing.sync_sessions()
        assert run is not None
        assert run.errors == []
        assert moves(session)[before : before + 1] == ["STOPPED"]
        wait_for(session, "WORKING")
        assert lane_of(session)["connected"] is True
        assert session.last_health_check_at is not None

    def test_a_stop_that_was_asked_for_stays(self, session: ChannelSession, waha: SimulatorControl) -> None:
        paired(session, waha)
        assert lifecycle.stop(session).status == "STOPPED"
        assert lane_of(session)["connected"] is False
        syncing.sync_sessions()
        assert waha.session(session.session_name)["status"] == "STOPPED"
        assert status_of(session) == "STOPPED"

    def test_failed_is_left_to_a_person(self, session: ChannelSession, waha: SimulatorControl) -> None:
        paired(session, waha)
        waha.unlink(session.session_name, revoke=False)
        syncing.sync_sessions()
        session.refresh_from_db()
        assert session.status == "FAILED"
        assert waha.session(session.session_name)["status"] == "FAILED"

    def test_a_session_that_waha_lost_is_made_again(
        self, session: ChannelSession, waha: SimulatorControl, simulator: SimulatorProcess
    ) -> None:
        paired(session, waha)
        delete_session(simulator, session.session_name)
        syncing.sync_sessions()
        assert "STOPPED" in moves(session)
        wait_for(session, "SCAN_QR_CODE")

    def test_unreachable_overwrites_nothing(
        self, session: ChannelSession, waha: SimulatorControl, settings: Settings
    ) -> None:
        paired(session, waha)
        checked = session.last_health_check_at
        settings.WAHA_BASE_URL = "http://127.0.0.1:9"
        run = syncing.sync_sessions()
        assert run is not None
        assert run.errors == ["ask WAHA: ChannelError"]
        session.refresh_from_db()
        assert (session.status, session.last_health_check_at) == ("WORKING", checked)
        assert lane_of(session)["connected"] is True

    def test_a_lane_held_by_a_failing_gateway_is_let_go_when_it_works(
        self, session: ChannelSession, waha: SimulatorControl
    ) -> None:
        paired(session, waha)
        messaging.add_hold(session.channel_id, "gateway_failing", now=database_now())
        messaging.add_hold(session.channel_id, "other", now=database_now())
        syncing.sync_sessions()
        assert lane_of(session)["holds"] == ["other"]

    def test_one_session_that_fails_stops_no_other(
        self, make_session: Callable[..., ChannelSession], session: ChannelSession, waha: SimulatorControl
    ) -> None:
        other = make_session(organization=session.organization)
        for each in (session, other):
            services.set_wanted(each, wanted=True)
        waha.fault("status", op="createSession", status=500, count=1)
        run = syncing.sync_sessions()
        assert run is not None
        assert run.errors == [f"{session.session_name}: ChannelError"]
        wait_for(other, "SCAN_QR_CODE")
        syncing.sync_sessions()
        wait_for(session, "SCAN_QR_CODE")

    def test_a_session_never_connected_is_left_alone(self, session: ChannelSession, waha: SimulatorControl) -> None:
        syncing.sync_sessions()
        assert waha.state()["sessions"] == []
        assert moves(session) == []

    def test_two_runs_at_once_have_one_effect(self, session: ChannelSession, waha: SimulatorControl) -> None:
        held, over = threading.Event(), threading.Event()

        def step() -> int:
            held.set()
            return int(over.wait(10))

        def hold() -> None:
            cron.run(syncing.NAME, ("hold", step))
            connection.close()

        thread = threading.Thread(target=hold)
        thread.start()
        assert held.wait(10)
        assert syncing.sync_sessions() is None
        over.set()
        thread.join()
        assert CronRun.objects.count() == 1


class TestPairNumber:
    """manage.py pair_number."""

    @pytest.fixture(autouse=True)
    def _look_often(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pair_number, "_LOOK_EVERY_SECONDS", 0.02)

    @pytest.fixture
    def picture(self, tmp_path: Path) -> Path:
        return tmp_path / "qr.png"

    @pytest.fixture
    def scanner(self, waha: SimulatorControl, picture: Path) -> Iterator[Callable[[str], None]]:
        """Scans the QR code of a session once it is in the picture."""
        threads: list[threading.Thread] = []

        def scan(name: str) -> None:
            def run() -> None:
                assert waiting.until(picture.exists)
                waha.scan(name, phone=PHONE)

            threads.append(threading.Thread(target=run))
            threads[-1].start()

        yield scan
        for thread in threads:
            thread.join()

    def run(self, *arguments: Any) -> str:
        out = io.StringIO()
        call_command("pair_number", "--name", "Balcão", *arguments, stdout=out)
        return out.getvalue()

    def test_it_shows_the_code_and_names_the_phone(self, scanner: Callable[[str], None], picture: Path) -> None:
        slug = OrganizationFactory.create().slug
        scanner(f"{slug}_1")
        said = self.run("--organization", slug, "--qr-file", picture, "--wait", "20")
        number = ids.encode(ids.CHANNEL, ChannelSession.unscoped.get().channel_id)
        assert said.splitlines()[-1] == f"{slug}_1 WORKING +{PHONE} {number}"
        assert "▀" in said or "█" in said
        assert not picture.exists()

    def test_run_again_it_takes_the_same_session(self, session: ChannelSession, waha: SimulatorControl) -> None:
        paired(session, waha)
        said = self.run("--organization", session.organization.slug)
        number = ids.encode(ids.CHANNEL, session.channel_id)
        assert said == f"{session.session_name} WORKING +{PHONE} {number}\n"
        assert ChannelSession.unscoped.count() == 1

    def test_a_phone_that_unlinked_us_is_linked_again(
        self, session: ChannelSession, waha: SimulatorControl, scanner: Callable[[str], None], picture: Path
    ) -> None:
        paired(session, waha)
        waha.unlink(session.session_name)
        scanner(session.session_name)
        said = self.run("--organization", session.organization.slug, "--qr-file", picture, "--wait", "20")
        assert f"{session.session_name} WORKING +{PHONE} " in said.splitlines()[-1]

    def test_it_gives_up(self, session: ChannelSession, waha: SimulatorControl) -> None:
        with pytest.raises(CommandError, match="run this again"):
            self.run("--organization", session.organization.slug, "--wait", "0.3")

    def test_what_is_wrong_is_named(self, session: ChannelSession, settings: Settings) -> None:
        with pytest.raises(CommandError, match="no organization nobody"):
            self.run("--organization", "nobody")
        settings.WAHA_BASE_URL = "http://127.0.0.1:9"
        with pytest.raises(CommandError, match="waha_refused"):
            self.run("--organization", session.organization.slug)

    @pytest.mark.parametrize(
        ("given", "named"),
        [
            ({"name": " "}, "--name"),
            ({"name": "x" * 400}, "--name"),
            ({"qr_file": Path("/nowhere/qr.png")}, "--qr-file"),
            ({"qr_file": Path("/")}, "--qr-file"),
        ],
    )
    def test_a_wrong_argument_is_named_before_anything_is_made(self, given: dict[str, Any], named: str) -> None:
        organization = OrganizationFactory.create()
        options = {"organization": organization.slug, "name": "Balcão", **given}
        with pytest.raises(CommandError, match=named):
            call_command("pair_number", **options)
        assert not ChannelSession.objects.of(organization).exists()
