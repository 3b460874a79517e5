"""A rate-limited consumer that keeps its rate under a backlog.

Stock Celery starts one timer chain per task that waits in a rate-limit bucket; the event loop fires ten
timers a turn and then sleeps, so ``50/s`` ran at 1 to 5 per second (celery issue 5927; measured). Here each
bucket has one refill timer. ``_schedule_bucket_request`` is private API: Celery is pinned, and
tests/broadcast_project/test_rate_limit.py starts a real worker to hold the rate.
"""

from __future__ import annotations

from typing import Any

from celery.worker.consumer import Consumer


class PacedConsumer(Consumer):
    """One refill timer per rate-limit bucket."""

    # Celery's own, unknown to its type stubs.
    task_buckets: dict[str, Any]
    _limit_move_to_pool: Any

    def _schedule_bucket_request(self, bucket: Any) -> None:
        if getattr(bucket, "refill_timer", None) is not None:
            return
        while True:
            try:
                request, tokens = bucket.pop()
            except IndexError:
                return
            if bucket.can_consume(tokens):
                self._limit_move_to_pool(request)
                continue
            bucket.contents.appendleft((request, tokens))
            bucket.refill_timer = self.timer.call_after(
                bucket.expected_time(tokens), self._refill, (bucket,), priority=0
            )
            return

    def _refill(self, bucket: Any) -> None:
        bucket.refill_timer = None
        self._schedule_bucket_request(bucket)

    def on_close(self) -> None:
        super().on_close()
        for bucket in self.task_buckets.values():
            if getattr(bucket, "refill_timer", None) is not None:
                self.timer.cancel(bucket.refill_timer)
                bucket.refill_timer = None
