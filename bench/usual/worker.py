"""The usual design of a broadcast: one Celery task for each recipient, which gets its row, posts, and saves it."""

from __future__ import annotations

import os
import threading

import requests
from celery import Celery

os.environ["DJANGO_SETTINGS_MODULE"] = "bench.usual.settings"

app = Celery("usual")
app.config_from_object("django.conf:settings", namespace="CELERY")
_local = threading.local()


def _session() -> requests.Session:
    """Kept alive by each thread: the usual design at its best."""
    if not hasattr(_local, "session"):
        _local.session = requests.Session()
        _local.session.trust_env = False
        _local.session.headers["X-Api-Key"] = os.environ["WAHA_API_KEY"]
    found: requests.Session = _local.session
    return found


def _deliver(recipient_id: int, session_name: str) -> None:
    from django.utils import timezone

    from bench.usual.models import Recipient

    recipient = Recipient.objects.get(pk=recipient_id)
    if recipient.status != "pending":
        return
    body = {"session": session_name, "chatId": f"{recipient.phone}@c.us", "text": recipient.text}
    answer = _session().post(f"{os.environ['WAHA_BASE_URL']}/api/sendText", json=body, timeout=(3.05, 20))
    answer.raise_for_status()
    recipient.status, recipient.sent_at = "sent", timezone.now()
    recipient.wa_message_id = str(answer.json().get("id", ""))[:128]
    recipient.save()


@app.task(name="usual.send")
def send(recipient_id: int, session_name: str) -> None:
    _deliver(recipient_id, session_name)


@app.task(name="usual.send_limited", rate_limit="100/s")
def send_limited(recipient_id: int, session_name: str) -> None:
    """The same under Celery's own rate limit, with its stock consumer."""
    _deliver(recipient_id, session_name)
