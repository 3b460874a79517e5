"""``GET /metrics`` for Prometheus: cheap figures of the whole installation, without any tenant's name."""

from __future__ import annotations

import hmac
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from ipaddress import ip_address

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from messaging import db, tallies
from permissions.api.plain import answers, openapi_answer

# Rows of one kind that are counted at most: beyond it the figure says "at least so many".
_MOST = 10_000
_FORWARDED = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "Via")
# Name in the database's answer: the metric's name, its label, what it is.
_GAUGES: dict[str, tuple[str, str, str]] = {
    "messages": ("broadcast_messages_estimated", "status", "Messages by status, as of the last ANALYZE."),
    "messages_open": ("broadcast_messages_open", "status", f"Messages not done with, up to {_MOST} of a status."),
    "oldest_open_event": ("broadcast_oldest_open_event_seconds", "", "Age of the oldest webhook not applied."),
    "lanes_held": ("broadcast_lanes_held", "hold", "Numbers that a hold stops, by the hold."),
    "lanes_connected": ("broadcast_lanes_connected", "", "Numbers that are connected."),
    "lanes_due": ("broadcast_lanes_due", "", "Numbers whose time has come, and that wait for a dispatcher."),
    "lanes_busy": ("broadcast_lanes_busy", "", "Numbers with a message in flight."),
    "cron_age": ("broadcast_cron_age_seconds", "name", "Since the last run of a periodic task began."),
}
_OPENAPI = {
    "tags": ["service"],
    "security": [],
    "summary": "Figures for Prometheus",
    "description": "With `Authorization: Bearer <METRICS_TOKEN>`, or from the same machine through no proxy.",
    "responses": {
        "200": openapi_answer("Figures.", schema={"type": "string"}, media_type="text/plain"),
        "403": openapi_answer("Neither.", schema={"type": "string"}, media_type="text/plain"),
    },
}


class _Figures(Collector):
    """Asked anew at each scrape."""

    def collect(self) -> Iterator[Metric]:
        rows = db.engine("SELECT name, label, value FROM engine_metrics(%s)", [_MOST])
        for key, (name, label, help_) in _GAUGES.items():
            yield _gauge(name, label, help_, [(row[1], row[2]) for row in rows if row[0] == key])
        sends = CounterMetricFamily("broadcast_sends", "Attempts to send, by what came of them.", labels=["outcome"])
        for outcome, number in sorted(tallies.totals().items()):
            sends.add_metric([outcome], number)
        yield sends


def _gauge(name: str, label: str, help_: str, values: Sequence[tuple[str, float]]) -> GaugeMetricFamily:
    gauge = GaugeMetricFamily(name, help_, labels=[label] if label else [])
    for word, value in values:
        gauge.add_metric([word] if label else [], value)
    return gauge


@answers("GET", openapi={"get": _OPENAPI})
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """Prometheus' text format; 403 for whoever has no token and does not stand beside us."""
    if not (_has_token(request) or _is_neighbour(request)):
        return HttpResponse("", status=HTTPStatus.FORBIDDEN, content_type="text/plain")
    registry = CollectorRegistry()
    registry.register(_Figures())
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


def _has_token(request: HttpRequest) -> bool:
    wanted, given = f"Bearer {settings.METRICS_TOKEN}", request.headers.get("Authorization", "")
    return bool(settings.METRICS_TOKEN) and hmac.compare_digest(given.encode(), wanted.encode())


def _is_neighbour(request: HttpRequest) -> bool:
    """Whether it comes straight from this machine: what a proxy forwards comes from there too, and says so."""
    if any(name in request.headers for name in _FORWARDED):
        return False
    try:
        return ip_address(str(request.META.get("REMOTE_ADDR", ""))).is_loopback
    except ValueError:
        return False
