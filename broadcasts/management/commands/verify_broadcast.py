"""``manage.py verify_broadcast``: the proof, from the rows, that a broadcast did what it promised."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.core.management.base import CommandError, CommandParser

from broadcasts import proof, selectors
from broadcasts.models import Broadcast, Recipient
from broadcasts.proof import Proof
from messaging.models import Message
from messaging.proof import Breach
from permissions import ids
from permissions.management.base import OperatorCommand

_AT_ONCE = 500
_SHOWN = 50


class Command(OperatorCommand):
    help = "Checks a broadcast's rows against each promise of the engine; fails and names each row that breaks one."

    def add_arguments(self, parser: CommandParser) -> None:
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("broadcast", nargs="?", metavar="BROADCAST", help="its id (bc_…) or its code")
        which.add_argument("--all", action="store_true", help="each broadcast, each outbound message and each lane")
        parser.add_argument("--verbose", action="store_true", help="each person, with message and attempts")

    def handle(self, *_args: Any, **options: Any) -> None:
        if options["all"]:
            proofs, breaches = proof.of_all()
        else:
            one = proof.of(_find(options["broadcast"]))
            proofs, breaches = [one], one.breaches
        for each in proofs:
            self._print(each, verbose=options["verbose"])
        self._conclude(breaches)

    def _print(self, proof: Proof, *, verbose: bool) -> None:
        broadcast = proof.broadcast
        self.stdout.write(f"{ids.encode(ids.BROADCAST, broadcast.pk)} {broadcast.public_id} {broadcast.status}")
        for name, counts in (("not fed", proof.states), ("messages", proof.statuses)):
            said = ", ".join(f"{number} {word}" for word, number in counts.items()) or "none"
            self.stdout.write(f"  {name}: {sum(counts.values())} ({said})")
        self.stdout.write(f"  people: {proof.people}")
        if verbose:
            self._print_people(broadcast)

    def _print_people(self, broadcast: Broadcast) -> None:
        for after in range(0, selectors.last_position(broadcast), _AT_ONCE):
            people = selectors.recipients(broadcast).filter(position__gt=after, position__lte=after + _AT_ONCE)
            for person in people.order_by("position"):
                self.stdout.write(_line(person, Message.unscoped.filter(pk=person.message_id).first()))

    def _conclude(self, breaches: Iterable[Breach]) -> None:
        found = list(breaches)
        for breach in found[:_SHOWN]:
            self.stderr.write(f"BREACH {breach}")
        if len(found) > _SHOWN:
            self.stderr.write(f"and {len(found) - _SHOWN} more")
        if found:
            raise CommandError(f"{len(found)} breaches")
        self.stdout.write("no breach")


def _find(reference: str) -> Broadcast:
    key = ids.decode(ids.BROADCAST, reference)
    found = Broadcast.unscoped.filter(**({"pk": key} if key else {"public_id": reference})).first()
    if found is None:
        raise CommandError(f"BROADCAST: there is none with the id or code {reference}")
    return found


def _line(person: Recipient, message: Message | None) -> str:
    who = f"  {person.position} {ids.encode(ids.RECIPIENT, person.pk)}"
    if message is None:
        return f"{who} {person.state} {person.code}".rstrip()
    said = [f"{each['attempt']}: {each.get('code', '')} sent={each.get('sent', '?')}" for each in message.history]
    tries = f"{message.attempt} attempts" + (f" ({'; '.join(said)})" if said else "")
    name = ids.encode(ids.MESSAGE, message.pk)
    return f"{who} {name} {message.status} {message.error_code}".rstrip() + f", {tries}"
