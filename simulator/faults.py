"""What goes wrong on command: rules set over the control API, and what they mean for one call."""

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from simulator.chance import Chance

# kind → its parameters with their defaults; None means "must be given".
ANSWER_KINDS: dict[str, dict[str, Any]] = {
    "delay_before": {"seconds": None},
    "delay_after": {"seconds": None},
    "status": {"status": None, "acted": False, "body": {}, "retry_after": ""},
    "reset": {"acted": False},
    "close": {"acted": False},
    "hang": {"acted": False, "seconds": 3600.0},
    "empty": {"acted": True},
    "garbage": {"acted": True},
    "trickle": {"acted": True, "seconds": 1.0},
    "engine_error": {"message": None, "acted": False, "extra": {}},
}
PHONE_KINDS: dict[str, dict[str, Any]] = {
    "echo": {"order": None, "seconds": 2.0},
    "drop_acks": {"acks": [1, 2, 3]},
    "late_acks": {"seconds": None},
    "duplicate_acks": {"times": 2},
    "reverse_acks": {},
    "ack_error": {"after": 0},
}
WEBHOOK_KINDS: dict[str, dict[str, Any]] = {
    "webhook_duplicate": {"times": 2, "fresh": False},
    "webhook_drop": {},
    "webhook_late": {"seconds": None},
}
KINDS = ANSWER_KINDS | PHONE_KINDS | WEBHOOK_KINDS
ECHO_ORDERS = ("none", "before", "after", "late")
SCOPE = ("op", "session", "chat_id", "event", "count", "probability", "seed", "lasts")
# The `op` of a fault that strikes every call: an outage.
EVERY_OP = "*"


class FaultRuleError(ValueError):
    """A fault that the control API cannot make sense of."""


@dataclass(slots=True)
class Rule:
    """One fault: where it applies, how often, and its parameters."""

    id: int
    kind: str
    parameters: dict[str, Any]
    op: str | None
    session: str | None
    chat_id: str | None
    event: str | None
    left: int | None
    probability: float
    chance: Chance
    ends_at: float = math.inf
    hits: int = 0

    def takes(self, *, op: str | None, session: str | None, chat_id: str | None, event: str | None) -> bool:
        """Whether it strikes here; each strike counts against `count`."""
        if self.left == 0 or time.monotonic() > self.ends_at:
            return False
        scopes = (
            (None if self.op == EVERY_OP else self.op, op),
            (self.session, session),
            (self.chat_id, chat_id),
            (self.event, event),
        )
        if any(wanted is not None and wanted != found for wanted, found in scopes):
            return False
        if not self.chance.hits(self.probability):
            return False
        self.hits += 1
        if self.left is not None:
            self.left -= 1
        return True

    def as_dict(self) -> dict[str, Any]:
        shown = ("id", "kind", "op", "session", "chat_id", "event", "left", "probability", "hits")
        return {name: getattr(self, name) for name in shown} | {"parameters": self.parameters}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the answer fails."""

    kind: str
    acted: bool
    parameters: dict[str, Any]


@dataclass(slots=True)
class Plan:
    """What the faults do to one call. The default is a call that goes well."""

    delay_before: float = 0.0
    delay_after: float = 0.0
    outcome: Outcome | None = None
    echo: str | None = None
    echo_seconds: float = 2.0
    dropped_acks: frozenset[int] = frozenset()
    ack_delay: float = 0.0
    ack_times: int = 1
    acks_reversed: bool = False
    ack_error_after: int | None = None


FINE = Plan()


@dataclass(slots=True)
class WebhookTrouble:
    """What the faults do to one event: how many copies, under fresh envelope ids or not, real seconds late."""

    copies: int = 1
    is_fresh: bool = False
    seconds: float = 0.0


@dataclass(slots=True)
class FaultBoard:
    """The rules in force, in the order in which they were set."""

    chance: Chance
    rules: list[Rule] = field(default_factory=list)
    _last_id: int = 0

    def add(self, request: Mapping[str, Any]) -> Rule:
        """Set one; raises FaultRuleError on an unknown kind, parameter or value."""
        kind = request.get("kind")
        if not isinstance(kind, str) or kind not in KINDS:
            raise FaultRuleError(f"kind must be one of {', '.join(KINDS)}")
        parameters = _parameters(kind, request)
        probability = request.get("probability", 1.0)
        if not isinstance(probability, int | float) or not 0 <= probability <= 1:
            raise FaultRuleError("probability must be a number from 0 to 1")
        count = request.get("count")
        if count is not None and (not isinstance(count, int) or count < 1):
            raise FaultRuleError("count must be a whole number from 1")
        for name in ("op", "session", "chat_id", "event"):
            if not isinstance(request.get(name), str | None):
                raise FaultRuleError(f"{name} must be a text")
        lasts = request.get("lasts")
        if lasts is not None and (isinstance(lasts, bool) or not isinstance(lasts, int | float) or lasts <= 0):
            raise FaultRuleError("lasts must be a number of seconds above 0")
        self._last_id += 1
        rule = Rule(
            id=self._last_id,
            kind=kind,
            parameters=parameters,
            op=request.get("op", "sendText" if kind in ANSWER_KINDS else None),
            session=request.get("session"),
            chat_id=request.get("chat_id"),
            event=request.get("event"),
            left=count,
            probability=float(probability),
            ends_at=math.inf if lasts is None else time.monotonic() + lasts,
            chance=Chance(request["seed"]) if request.get("seed") is not None else self.chance,
        )
        self.rules.append(rule)
        return rule

    def remove(self, rule_id: int | None = None) -> int:
        """Lift one, or all; returns how many."""
        before = len(self.rules)
        self.rules = [] if rule_id is None else [rule for rule in self.rules if rule.id != rule_id]
        return before - len(self.rules)

    def plan(self, *, op: str, session: str | None, chat_id: str | None) -> Plan:
        """All rules that strike this call, put together; of two outcomes the first set wins."""
        plan = Plan()
        for rule in self._struck({**ANSWER_KINDS, **PHONE_KINDS}, op=op, session=session, chat_id=chat_id):
            _apply(plan, rule)
        return plan

    def webhook_trouble(self, *, session: str, event: str) -> WebhookTrouble:
        """All rules that strike this event, put together."""
        trouble = WebhookTrouble()
        for rule in self._struck(WEBHOOK_KINDS, session=session, event=event):
            match rule.kind:
                case "webhook_drop":
                    trouble.copies = 0
                case "webhook_late":
                    trouble.seconds += rule.parameters["seconds"]
                case _:
                    trouble.copies *= int(rule.parameters["times"])
                    trouble.is_fresh = bool(rule.parameters["fresh"])
        return trouble

    def _struck(
        self,
        kinds: Iterable[str],
        *,
        op: str | None = None,
        session: str | None = None,
        chat_id: str | None = None,
        event: str | None = None,
    ) -> Iterable[Rule]:
        for rule in self.rules:
            if rule.kind in kinds and rule.takes(op=op, session=session, chat_id=chat_id, event=event):
                yield rule


def _parameters(kind: str, request: Mapping[str, Any]) -> dict[str, Any]:
    known = KINDS[kind]
    unknown = set(request) - set(known) - set(SCOPE) - {"kind"}
    if unknown:
        raise FaultRuleError(f"{kind} knows no {', '.join(sorted(unknown))}")
    found = {name: request.get(name, default) for name, default in known.items()}
    missing = [name for name, value in found.items() if value is None]
    if missing:
        raise FaultRuleError(f"{kind} needs {', '.join(missing)}")
    for name, value in found.items():
        fits, words = _CHECKS[name]
        if not fits(value):
            raise FaultRuleError(f"{name} must be {words}")
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


# A parameter → what it must be, and how that is said.
_CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "seconds": (_is_number, "a number of seconds"),
    "status": (lambda value: _is_whole(value) and 200 <= value <= 599, "a status from 200 to 599"),
    "acted": (lambda value: isinstance(value, bool), "true or false"),
    "fresh": (lambda value: isinstance(value, bool), "true or false"),
    "body": (lambda value: isinstance(value, dict | list), "an object or a list"),
    "extra": (lambda value: isinstance(value, dict), "an object"),
    "retry_after": (lambda value: isinstance(value, str) or _is_number(value), "seconds or a date"),
    "message": (lambda value: isinstance(value, str), "a text"),
    "order": (lambda value: value in ECHO_ORDERS, f"one of {', '.join(ECHO_ORDERS)}"),
    "acks": (lambda value: isinstance(value, list) and all(map(_is_whole, value)), "a list of whole numbers"),
    "times": (lambda value: _is_whole(value) and value >= 0, "a whole number from 0"),
    "after": (_is_whole, "a whole number"),
}


def _apply(plan: Plan, rule: Rule) -> None:
    parameters = rule.parameters
    match rule.kind:
        case "delay_before":
            plan.delay_before += parameters["seconds"]
        case "delay_after":
            plan.delay_after += parameters["seconds"]
        case "echo":
            plan.echo, plan.echo_seconds = parameters["order"], parameters["seconds"]
        case "drop_acks":
            plan.dropped_acks |= frozenset(parameters["acks"])
        case "late_acks":
            plan.ack_delay += parameters["seconds"]
        case "duplicate_acks":
            plan.ack_times = parameters["times"]
        case "reverse_acks":
            plan.acks_reversed = True
        case "ack_error":
            plan.ack_error_after = parameters["after"]
        case _:
            plan.outcome = plan.outcome or Outcome(rule.kind, bool(parameters["acted"]), parameters)
