"""What the commands about one number have in common."""

from __future__ import annotations

from django.core.management.base import CommandError, CommandParser

from messaging.models import Channel
from permissions import ids
from permissions.models import User


def add(parser: CommandParser) -> None:
    """CHANNEL, --reason and --by."""
    parser.add_argument("channel", metavar="CHANNEL", help="the number's id (ch_…)")
    parser.add_argument("--reason", required=True, help="why; it goes into the audit trail")
    parser.add_argument("--by", required=True, metavar="USERNAME", help="the super-admin who answers for it")


def channel(text: str) -> Channel:
    """The number of that id; CommandError names the argument."""
    key = ids.decode(ids.CHANNEL, text)
    found = Channel.unscoped.filter(pk=key).first() if key else None
    if found is None:
        raise CommandError(f"CHANNEL: no number has the id {text}")
    return found


def super_admin(username: str) -> User:
    """The super-admin of that name; CommandError names the argument."""
    found = User.objects.filter(username=username, is_superuser=True, is_active=True).first()
    if found is None:
        raise CommandError(f"--by: {username} is not an active super-admin")
    return found
