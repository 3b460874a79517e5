"""What a careful operator wants to know before a broadcast leaves: warnings, and risks to the number."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from broadcasts import selectors, similarity
from broadcasts.codes import RiskCode, WaitingCode, WarningCode
from broadcasts.models import Broadcast
from broadcasts.outlook import Outlook
from broadcasts.selectors import Tally
from messaging.models import Channel

# People never written to before may be at most half of a day (design: rules, "Pacing").
_NEW_PEOPLE_SHARE = 0.5
_MOST_LINKS = 1
# Of the letters of a text that has some.
_CAPITALS_SHARE, _CAPITALS_FROM = 0.6, 20
_LINK = re.compile(r"(?i)\b(?:https?://|www\.)\S+")
_SHORTENERS = re.compile(
    r"(?i)\b(?:bit\.ly|tinyurl\.com|t\.co|goo\.gl|is\.gd|ow\.ly|cutt\.ly|rebrand\.ly|shorturl\.at|encurtador\.com\.br"
    r"|abre\.ai|l1nk\.dev|rb\.gy|tiny\.cc)/\S"
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to know: a stable code, and words for people that repeat no personal data."""

    code: WarningCode | RiskCode
    detail: str


def warnings(tally: Tally, outlook: Outlook) -> list[Finding]:
    """What will hold the broadcast up, or cut it short."""
    return [*_of_audience(tally), *_of_lanes(outlook), *_of_time(outlook)]


def risks(broadcast: Broadcast, channels: Sequence[Channel], tally: Tally) -> list[Finding]:
    """What may cost a number, in the texts and in who gets them."""
    return [
        *_of_texts(broadcast.variations),
        *_of_repetition(broadcast, channels),
        *_of_people(channels, broadcast, tally),
    ]


def _of_audience(tally: Tally) -> Iterator[Finding]:
    if not tally.total_count:
        yield Finding(WarningCode.EMPTY_AUDIENCE, _("Nobody in the group can be reached."))


def _of_lanes(outlook: Outlook) -> Iterator[Finding]:
    waits = [wait.code for wait in outlook.lanes if wait is not None]
    if away := waits.count(WaitingCode.CHANNEL_DISCONNECTED):
        detail = ngettext("%(n)d number is disconnected.", "%(n)d numbers are disconnected.", away) % {"n": away}
        yield Finding(WarningCode.CHANNEL_DISCONNECTED, detail)
    held = sum(
        code in {WaitingCode.CHANNEL_HELD, WaitingCode.PHONE_CHANGED, WaitingCode.GATEWAY_FAILING} for code in waits
    )
    if held:
        detail = ngettext("%(n)d number is held.", "%(n)d numbers are held.", held) % {"n": held}
        yield Finding(WarningCode.CHANNEL_HELD, detail)
    if outlook.lanes and waits.count(WaitingCode.OUTSIDE_WINDOW) == len(outlook.lanes):
        yield Finding(WarningCode.OUTSIDE_WINDOW, _("It starts outside the hours for sending, and waits for them."))
    if WaitingCode.DAILY_LIMIT in waits:
        yield Finding(WarningCode.DAILY_LIMIT, _("A number has used up its limit of the day."))


def _of_time(outlook: Outlook) -> Iterator[Finding]:
    if outlook.too_late:
        detail = ngettext(
            "%(n)d person will not get the message before the broadcast ends.",
            "%(n)d people will not get the message before the broadcast ends.",
            outlook.too_late,
        )
        yield Finding(WarningCode.ENDS_BEFORE_DONE, detail % {"n": outlook.too_late})
    if len(outlook.days) > 1:
        detail = _("Sending takes %(n)d days.") % {"n": len(outlook.days)}
        yield Finding(WarningCode.SEVERAL_DAYS, detail)


def _of_texts(texts: Sequence[str]) -> Iterator[Finding]:
    if any(_SHORTENERS.search(text) for text in texts):
        yield Finding(RiskCode.SHORT_LINK, _("A shortened link hides where it leads: WhatsApp distrusts it."))
    if any(len(_LINK.findall(text)) > _MOST_LINKS for text in texts):
        yield Finding(RiskCode.MANY_LINKS, _("A text has more than one link."))
    if any(_shouts(text) for text in texts):
        yield Finding(RiskCode.CAPITALS, _("A text is written mostly in capital letters."))


def _shouts(text: str) -> bool:
    letters = [char for char in _LINK.sub("", text) if char.isalpha()]
    capitals = sum(char.isupper() for char in letters)
    return len(letters) >= _CAPITALS_FROM and capitals > _CAPITALS_SHARE * len(letters)


def _of_repetition(broadcast: Broadcast, channels: Sequence[Channel]) -> Iterator[Finding]:
    before = selectors.texts_on(channels, before=broadcast, number=similarity.WINDOW)
    alike = sorted({place for texts in before for place in similarity.repeated(broadcast.variations, texts)})
    if alike:
        places = ", ".join(str(place + 1) for place in alike)
        detail = _("Too much like texts that this number sent before, or like each other: variations %(places)s.")
        yield Finding(RiskCode.SIMILAR_TEXT, detail % {"places": places})


def _of_people(channels: Sequence[Channel], broadcast: Broadcast, tally: Tally) -> Iterator[Finding]:
    most = int(sum(channel.lane.cap_soft for channel in channels) * _NEW_PEOPLE_SHARE)
    if tally.total_count <= most:
        return
    new = selectors.never_written_to(broadcast)
    if new > most:
        detail = _("%(n)d people were never written to before; %(most)d a day is the most for these numbers.")
        yield Finding(RiskCode.NEW_PEOPLE, detail % {"n": new, "most": most})
