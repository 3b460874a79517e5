"""Why a message waits, failed or was not sent: the record's codes in words for people."""

from __future__ import annotations

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

_WORDS: dict[str, Promise] = {
    # Why it waits.
    "pace": _("waiting for its turn: the number pauses between messages"),
    "outside_window": _("outside the hours for sending"),
    "daily_limit": _("the number's limit of the day is reached"),
    "new_people_limit": _("the number has written to as many new people today as it may"),
    "channel_restricted": _("WhatsApp restricts the number: it writes to nobody new for now"),
    "channel_reserved": _("the number is a reserve: it sends no broadcasts until it takes over from another"),
    "channel_in_warmup": _("the number is too new for broadcasts"),
    "channel_held": _("the number is held until somebody looks at it"),
    "channel_disconnected": _("the number is disconnected"),
    "broadcast_paused": _("the broadcast is paused"),
    "retry_wait": _("waiting to try again"),
    "figures_stale": _("the number's limits are being computed"),
    "gateway_failing": _("WhatsApp's gateway is failing; it is tried again by itself"),
    "gate_lost": _("the database did not answer; it is tried again by itself"),
    "not_prepared": _("the message could not be prepared; it is tried again by itself"),
    "phone_changed": _("another WhatsApp account was connected: somebody has to confirm it"),
    # Why it was not sent.
    "contact_blocked": _("the person is blocked"),
    "contact_on_hold": _("the person is on hold until somebody decides"),
    "broadcast_canceled": _("the broadcast was canceled"),
    "expired": _("its time was over before it could leave"),
    "duplicate": _("the same person was written to already"),
    "contact_erased": _("the person was erased"),
    "missing_variable": _("lacks a value that the text uses"),
    "text_too_long": _("the text would pass 4096 characters"),
    # Why it failed.
    "outcome_unknown": _("nobody knows whether it was sent: WhatsApp never answered"),
    "send_failed": _("it could not be sent"),
    "invalid_chat_id": _("WhatsApp has no such address"),
    "type_not_supported": _("this kind of message can't be sent by this number"),
    "not_on_whatsapp": _("this phone has no WhatsApp"),
    "ack_error": _("WhatsApp reported an error"),
    "waha_rejected": _("WAHA refused the message"),
    "waha_not_supported": _("this version of WAHA can't send it"),
    "waha_not_configured": _("the address of WAHA is not configured"),
    "waha_timeout": _("WAHA did not answer in time"),
    "waha_connection_lost": _("the connection to WAHA broke"),
    "waha_connect_timeout": _("WAHA can't be reached"),
    "waha_refused": _("WAHA can't be reached"),
    "waha_unresolved": _("WAHA can't be found"),
    "waha_unreachable": _("WAHA can't be reached"),
    "waha_tls_failed": _("the secure connection to WAHA failed"),
    "waha_broken_answer": _("WAHA gave a broken answer"),
    "too_late": _("it took too long to begin; it is tried again by itself"),
    "adapter_error": _("an error of this program"),
}


def words_of(code: str) -> str | Promise:
    """The code in words; a code without words is shown as it is."""
    return _WORDS.get(code, code)
