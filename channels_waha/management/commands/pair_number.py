"""Connect a number: create its session, show the QR code, wait until the phone has scanned it."""

from __future__ import annotations

import io
import os
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import segno
from django.core.management.base import CommandError
from django.utils import timezone

from channels_waha import lifecycle, services
from channels_waha.lifecycle import SessionBusy
from channels_waha.models import ChannelSession
from events.services import SYSTEM
from messaging.adapters import ChannelError
from permissions import ids
from permissions.management.base import OperatorCommand
from permissions.models import Organization

Status = ChannelSession.Status
_LOOK_EVERY_SECONDS = 1.0
_LONGEST_NAME = 120


class Command(OperatorCommand):
    """Repeatable: a name that exists in the organization is connected again."""

    help = "Connects a WhatsApp number: shows the QR code to scan, and waits until it works."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--organization", required=True, metavar="SLUG")
        parser.add_argument("--name", required=True, help="how the number is called here")
        parser.add_argument("--qr-file", type=Path, help="write the QR code to this PNG file too")
        parser.add_argument("--wait", type=float, default=120.0, metavar="SECONDS", help="give up after")

    def handle(self, **options: Any) -> None:
        _require_name(options["name"])
        _require_writable(options["qr_file"])
        session = self._session(options["organization"], options["name"])
        try:
            session = lifecycle.connect(session)
            session = self._wait(session, options["qr_file"], time.monotonic() + options["wait"])
        except SessionBusy as error:
            raise CommandError(str(error)) from error
        except ChannelError as error:
            raise CommandError(f"WAHA: {error.code} {error.detail}".rstrip()) from error
        finally:
            if options["qr_file"] is not None:
                # Whoever scans it reads the account.
                options["qr_file"].unlink(missing_ok=True)
        number = ids.encode(ids.CHANNEL, session.channel_id)
        self.stdout.write(f"{session.session_name} {session.status} {session.phone_number} {number}")

    def _session(self, slug: str, name: str) -> ChannelSession:
        try:
            organization = Organization.objects.get(slug=slug)
        except Organization.DoesNotExist:
            raise CommandError(f"no organization {slug}") from None
        known = ChannelSession.objects.of(organization).filter(display_name=name).first()
        return known or services.create_session(
            organization=organization, display_name=name, actor=SYSTEM, now=timezone.now()
        )

    def _wait(self, session: ChannelSession, qr_file: Path | None, deadline: float) -> ChannelSession:
        shown, has_relinked = "", False
        while session.status != Status.WORKING:
            if time.monotonic() > deadline:
                raise CommandError(f"{session.session_name} is {session.status}; run this again for a new QR code")
            if session.status == Status.SCAN_QR_CODE:
                shown = self._show(session, shown, qr_file)
            elif session.status == Status.FAILED and not has_relinked:
                # Unlinked on the phone: a restart alone fails again.
                session, has_relinked = lifecycle.relink(session), True
            time.sleep(_LOOK_EVERY_SECONDS)
            session = lifecycle.refresh(session)
        return session

    def _show(self, session: ChannelSession, shown: str, qr_file: Path | None) -> str:
        """Print the QR code if it is a new one; what is shown now."""
        try:
            value = lifecycle.qr_value(session)
        except ChannelError as error:
            if error.code != "session_not_working":
                raise
            # Scanned in this moment.
            return shown
        if value == shown:
            return shown
        code = segno.make(value, error="l", micro=False)
        out = io.StringIO()
        code.terminal(out=out, compact=True, border=2)
        self.stdout.write(out.getvalue())
        if qr_file is not None:
            code.save(str(qr_file), kind="png", scale=6, border=4)
        return value


def _require_name(name: str) -> None:
    if not 1 <= len(name.strip()) <= _LONGEST_NAME:
        raise CommandError(f"--name: 1 to {_LONGEST_NAME} characters")


def _require_writable(path: Path | None) -> None:
    """Before anything is made, here or at WAHA."""
    if path is not None and (path.is_dir() or not os.access(path.parent, os.W_OK)):
        raise CommandError(f"--qr-file: {path} can't be written")
