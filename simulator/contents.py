"""What a message holds, by type: the public fields of WAHA beside the engine's own object (Baileys)."""

import base64
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from simulator.files import File

# kind → the Baileys object that holds it.
MEDIA = {
    "image": "imageMessage",
    "video": "videoMessage",
    "video_note": "ptvMessage",
    "audio": "audioMessage",
    "voice": "audioMessage",
    "document": "documentMessage",
    "sticker": "stickerMessage",
}
CAPTIONED = frozenset({"image", "video", "document"})
_PATH = "/v/t62.7118-24/SIM?ccb=11-4&oh=01_SIM&oe=SIM&_nc_sid=5e03e0"


@dataclass(slots=True, kw_only=True)
class Content:
    """One message's content. `data` is the engine's object; `raw` goes beside it, where an engine puts more.

    `target` is the bare id of the message that a reaction, an edit, a revoke or a vote is about.
    """

    kind: str
    data: dict[str, Any]
    body: str | None = None
    file: File | None = None
    location: dict[str, Any] | None = None
    vcards: list[str] | None = None
    target: str | None = None
    raw: dict[str, Any] = field(default_factory=dict)


def text(body: str, *, context: dict[str, Any] | None = None) -> Content:
    """A text as it is sent over the API, or one that quotes another."""
    extended: dict[str, Any] = {"text": body}
    if context is not None:
        extended["contextInfo"] = context
    return Content(kind="text", data={"extendedTextMessage": extended}, body=body)


def typed(body: str, *, context: dict[str, Any] | None = None) -> Content:
    """A text as someone types it on a phone."""
    if context is not None:
        return text(body, context=context)
    return Content(kind="text", data={"conversation": body}, body=body)


def media(
    kind: str,
    file: File,
    *,
    caption: str | None = None,
    context: dict[str, Any] | None = None,
    at: int,
    is_sent: bool = True,
) -> Content:
    """A picture, film, sound or document, as WhatsApp's servers would hold it. `at` in epoch seconds."""
    shown: dict[str, Any] = {
        "url": f"https://mmg.whatsapp.net{_PATH}&mms3=true",
        "mimetype": file.mimetype,
        "fileLength": str(len(file.data)),
        **_own_fields(kind, file),
        "mediaKey": _base64(os.urandom(32)),
        "directPath": _PATH,
    }
    shown |= _uploaded(kind, file, at) if is_sent else _downloaded(kind, file)
    if caption is not None and kind in CAPTIONED:
        shown["caption"] = caption
    if context is not None:
        shown["contextInfo"] = context
    return Content(kind=kind, data={MEDIA[kind]: shown}, body=shown.get("caption"), file=file)


def _uploaded(kind: str, file: File, at: int) -> dict[str, Any]:
    """What the engine knows of a file that it has sent itself."""
    digest = hashlib.sha256(file.data).digest()
    found: dict[str, Any] = {
        "fileSha256": _base64(digest),
        "fileEncSha256": _base64(hashlib.sha256(digest).digest()),
        "mediaKeyTimestamp": str(at),
    }
    return found | ({"jpegThumbnail": ""} if kind in ("image", "video", "video_note") else {})


def _downloaded(kind: str, file: File) -> dict[str, Any]:
    """What comes with a file that someone else sent."""
    if kind == "document":
        return {"title": file.filename or "file"}
    return {"height": 10, "width": 10} if kind in ("image", "video", "video_note") else {}


def _own_fields(kind: str, file: File) -> dict[str, Any]:
    match kind:
        case "voice":
            return {"seconds": 1, "ptt": True}
        case "audio":
            return {"seconds": 1, "ptt": False}
        case "document":
            return {"fileName": file.filename or "file"}
        case "sticker":
            return {"height": 128, "width": 128, "isAnimated": False}
        case _:
            return {}


def location(
    latitude: float,
    longitude: float,
    *,
    name: str | None = None,
    address: str | None = None,
    context: dict[str, Any] | None = None,
) -> Content:
    """WAHA shows the degrees as strings, the engine as numbers."""
    held = {"degreesLatitude": latitude, "degreesLongitude": longitude, "name": name, "address": address}
    data: dict[str, Any] = {key: value for key, value in held.items() if value is not None}
    if context is not None:
        data["contextInfo"] = context
    shown = {
        "live": False,
        "latitude": _number(latitude),
        "longitude": _number(longitude),
        "name": name,
        "address": address,
        "url": None,
        "description": None,
        "thumbnail": None,
    }
    return Content(kind="location", data={"locationMessage": data}, location=shown)


def contacts(
    vcards: Sequence[str], *, names: Sequence[str | None] = (), context: dict[str, Any] | None = None
) -> Content:
    """One card or several; `names` are what the sender calls them, None where he gives none."""
    cards = [
        {"vcard": vcard} | ({"displayName": name} if name else {})
        for vcard, name in zip(vcards, [*names, *[None] * len(vcards)], strict=False)
    ]
    more = {} if context is None else {"contextInfo": context}
    if len(cards) == 1:
        data: dict[str, Any] = {"contactMessage": cards[0] | more}
    else:
        data = {"contactsArrayMessage": {"displayName": f"{len(cards)} contacts", "contacts": cards} | more}
    return Content(kind="contact", data=data, vcards=list(vcards))


def vcard(*, name: str, phone: str, whatsapp_id: str | None = None, organization: str | None = None) -> str:
    """As WAHA writes one of its fields."""
    lines = ["BEGIN:VCARD", "VERSION:3.0", f"FN:{name}"]
    if organization:
        lines.append(f"ORG:{organization};")
    waid = f";waid={whatsapp_id}" if whatsapp_id else ""
    return "\n".join([*lines, f"TEL;type=CELL;type=VOICE{waid}:{phone}", "END:VCARD"])


def poll(name: str, options: Sequence[str], *, several: bool = False) -> Content:
    held = {
        "name": name,
        "options": [{"optionName": option} for option in options],
        "selectableOptionsCount": 0 if several else 1,
    }
    secret = {"messageSecret": _base64(os.urandom(32))}
    return Content(kind="poll", data={"messageContextInfo": secret, "pollCreationMessageV3": held})


def vote(key: dict[str, Any], *, options: Sequence[str], at_ms: int) -> Content:
    """A choice among a poll's options; none takes it back."""
    held = {"pollCreationMessageKey": key, "senderTimestampMs": str(at_ms), "selectedOptions": list(options)}
    return Content(kind="vote", data={"pollUpdateMessage": held}, target=key["id"])


def reaction(key: dict[str, Any], *, emoji: str, at_ms: int) -> Content:
    """`key` names the message reacted to; an empty emoji takes the reaction back."""
    held = {"key": key, "text": emoji, "senderTimestampMs": str(at_ms)}
    return Content(kind="reaction", data={"reactionMessage": held}, body=emoji, target=key["id"])


def edit(key: dict[str, Any], *, body: str, edited: dict[str, Any], at_ms: int) -> Content:
    held = {"key": key, "type": "MESSAGE_EDIT", "editedMessage": edited, "timestampMs": str(at_ms)}
    return Content(kind="edit", data={"protocolMessage": held}, body=body, target=key["id"])


def revoke(key: dict[str, Any]) -> Content:
    return Content(kind="revoke", data={"protocolMessage": {"key": key, "type": "REVOKE"}}, target=key["id"])


def empty() -> Content:
    """A message whose content never came: WAHA tells of it all the same."""
    return Content(kind="empty", data={})


def view_once() -> Content:
    """To be seen once, on the phone alone: a linked device gets the envelope."""
    return Content(kind="view_once", data={}, raw={"key": {"isViewOnce": True}})


def system() -> Content:
    """Nothing anyone wrote: here that the security code has changed."""
    return Content(kind="system", data={}, raw={"messageStubType": 39, "messageStubParameters": []})


def unsupported() -> Content:
    """A type that this version does not know."""
    return Content(kind="unsupported", data={"placeholderMessage": {"type": "MASK_LINKED_DEVICES"}})


def context(*, stanza_id: str, participant: str, quoted: dict[str, Any]) -> dict[str, Any]:
    """What a message carries that quotes another. `participant` in the engine's form."""
    return {"stanzaId": stanza_id, "participant": participant, "quotedMessage": quoted}


def _number(value: float) -> str:
    """As JavaScript prints it: `51.5`, `-23`."""
    return str(int(value)) if float(value).is_integer() else str(value)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
