"""The strict door: one text in, one Phone or one reason out."""

from dataclasses import dataclass

from audience.phones import numbering, typed, whatsapp
from audience.phones.numbering import Phone
from audience.phones.rejection import PhoneRejected, Reason
from audience.phones.whatsapp import IdKind


@dataclass(frozen=True, slots=True)
class Finding:
    """`verdict` is the canonical digits, or `REJECT:` and the reason."""

    verdict: str
    explanation: str


def parse(raw: str, *, region: str = "BR") -> Phone:
    """The phone that the text names, by the numbering plan of its country.

    `region` is the ISO country whose habits the writer has; it decides only
    where no country code is written. Raises PhoneRejected for whatever is not
    exactly one reachable number, and ValueError for a region that does not exist.
    """
    region = numbering.known_region(region)
    if (plain := numbering.plain_mobile(raw, region)) is not None:
        return plain
    text = typed.clean(raw)
    if whatsapp.is_bsuid(text):
        raise PhoneRejected(Reason.BSUID, "a business-scoped id of WhatsApp, not a phone")
    if "@" in text:
        return _from_whatsapp_id(text, region)
    return numbering.resolve(typed.read(text, region), region)


def explain(raw: str, *, region: str = "BR") -> Finding:
    """`parse`, with its outcome in words; one line, never the text itself."""
    try:
        phone = parse(raw, region=region)
    except PhoneRejected as rejected:
        return Finding(f"REJECT:{rejected.reason.value}", rejected.explanation)
    others = ", ".join(phone.variants[1:])
    also = f"; also spelled {others}" if others else ""
    return Finding(phone.identity, f"{phone.note}{also}")


_NO_PHONE = {
    IdKind.LID: (Reason.LID, "a hidden id of WhatsApp (LID); its digits are no phone"),
    IdKind.GROUP: (Reason.GROUP, "a group, not a person"),
    IdKind.NEWSLETTER: (Reason.NEWSLETTER, "a channel, not a person"),
    IdKind.BROADCAST: (Reason.BROADCAST, "a broadcast list, not a person"),
    IdKind.STATUS: (Reason.BROADCAST, "the status feed, not a person"),
    IdKind.SYSTEM: (Reason.SYSTEM, "WhatsApp's own sender, not a person"),
    IdKind.EMPTY: (Reason.EMPTY, "an id without a number"),
}


def _from_whatsapp_id(text: str, region: str) -> Phone:
    # Strict even here: what stands in a spreadsheet did not come from WhatsApp.
    wa_id = whatsapp.identity_of_whatsapp_id(text)
    if wa_id.kind is IdKind.PHONE:
        return numbering.resolve(typed.Typed(wa_id.value, international=True, area_marked=False), region)
    reason, explanation = _NO_PHONE.get(wa_id.kind, (Reason.CHARS, "holds characters that no phone has"))
    raise PhoneRejected(reason, explanation)
