"""Days in seconds: an engine at the time that the test says.

The engine orders everything by the database's ``clock_timestamp()``. For the length of one test's transaction a schema
of the test's own stands before the system's in the search path of the engine's functions and of the connection; its
clock stands still until the test moves it, and what is drawn is drawn alike each time. Nothing in the product knows
of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise

import psycopg
from django.db import connection

from messaging import db, delivery, lanes
from messaging.adapters import Outgoing
from messaging.models import Lane
from permissions.postgres import scoping

_PATH = "virtual_time, pg_catalog, public"
_INSTALL = f"""
CREATE SCHEMA virtual_time;
GRANT USAGE ON SCHEMA virtual_time TO PUBLIC;
CREATE FUNCTION virtual_time.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
  AS $$ SELECT pg_catalog.current_setting('virtual_time.now')::timestamptz $$;
DO $$
DECLARE f regprocedure;
BEGIN
  FOR f IN SELECT p.oid FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
           WHERE p.pronamespace = 'public'::regnamespace AND p.proname LIKE 'engine\\_%' AND l.lanname = 'plpgsql' LOOP
    EXECUTE pg_catalog.format('ALTER FUNCTION %s SET search_path = {_PATH}, pg_temp', f);
  END LOOP;
END $$;
SET LOCAL search_path = {_PATH};
"""


class Clock:
    """The database's clock, and through ``now`` Python's too. It only moves forward."""

    def __init__(self, start: datetime) -> None:
        self._now = start
        self._tell()

    @classmethod
    def install(cls, start: datetime) -> Clock:
        """Within a test's transaction, which takes it away again."""
        connection.ensure_connection()
        raw = connection.connection
        # After it nothing is known of the role, so that the scope is told anew.
        with scoping.noted(raw, "ROLLBACK"), psycopg.ClientCursor(raw) as cursor:
            cursor.execute(f"SET LOCAL ROLE none; {_INSTALL}; RESET ROLE".encode())
        # The jitter of the gaps is drawn there too: a mean over a hundred of them is the same each time.
        db.rows("SELECT setseed(0.5)")
        return cls(start)

    def now(self) -> datetime:
        return self._now

    def at(self, moment: datetime) -> None:
        assert moment >= self._now
        self._now = moment
        self._tell()

    def advance(self, seconds: float) -> None:
        self.at(self._now + timedelta(seconds=seconds))

    def _tell(self) -> None:
        db.rows("SELECT set_config('virtual_time.now', %s, false)", [self._now.isoformat()])


@dataclass
class Gateway:
    """Acts some time after the request and answers some time after that.

    ``acts``: (when, what), as it acted; ``calls``: when each was asked and answered.
    """

    clock: Clock
    before: Callable[[], float] = lambda: 0.0
    after: Callable[[], float] = lambda: 0.0
    acts: list[tuple[datetime, Outgoing]] = field(default_factory=list)
    calls: list[tuple[datetime, datetime]] = field(default_factory=list)

    def __call__(self, outgoing: Outgoing) -> str | None:
        asked_at = self.clock.now()
        self.clock.advance(self.before())
        self.acts.append((self.clock.now(), outgoing))
        self.clock.advance(self.after())
        self.calls.append((asked_at, self.clock.now()))
        return outgoing.provider_id

    @property
    def times(self) -> list[datetime]:
        return [at for at, _outgoing in self.acts]

    @property
    def gaps(self) -> list[float]:
        """Seconds between one act and the next."""
        return [(later - before).total_seconds() for before, later in pairwise(self.times)]

    @property
    def pauses(self) -> list[float]:
        """Seconds between the end of one call and the next."""
        return [(later[0] - before[1]).total_seconds() for before, later in pairwise(self.calls)]


def run(clock: Clock, *, until: datetime, chores: Iterable[Callable[[], int]] = (), tick: float | None = None) -> None:
    """Dispatch and deliver from now on, jumping to whatever is due next, until a moment.

    ``chores`` are done each time before claiming; with ``tick`` seconds nobody looks more seldom than that.
    """
    work = list(chores)
    while clock.now() < until:
        for chore in work:
            chore()
        lanes.free_overdue()
        claims = lanes.claim(limit=100)
        for claim in claims:
            delivery.deliver(claim)
        if not claims:
            clock.at(min([until, *_due(clock.now(), tick)]))


def _due(now: datetime, tick: float | None) -> list[datetime]:
    times: list[datetime] = [] if tick is None else [now + timedelta(seconds=tick)]
    for row in Lane.objects.values_list("next_at", "busy_until"):
        times += [at for at in row if at is not None]
    return [max(at, now + timedelta(milliseconds=1)) for at in times]
