"""How Brazilians group the digits of a number, so that no other order reads as one.

Digits alone can't tell `99999-0001 (11)` from somebody in DDD 99, nor a CPF or
an American number from a landline; the marks between them can.
"""

import re
from itertools import accumulate

from audience.phones.rejection import PhoneRejected, Reason

_BRACKETS = re.compile(r"[(\[]([^()\[\]]*)(?:[)\]]|\Z)")
_PREFIX = r"(?:00(?:\d\d)?)?(?:55)?(?:(?:0|90)(?:\d\d)?)?"  # country, then trunk or collect, with a carrier
_BEFORE_AREA = re.compile(_PREFIX, re.ASCII)
_HEAD = re.compile(rf"{_PREFIX}(?:\d\d)?", re.ASCII)
_HEAD_AND_NINE = re.compile(rf"{_PREFIX}(?:\d\d)?9", re.ASCII)
_LONE_NINE = re.compile(r"(?:\A|\D)9\D*\Z", re.ASCII)
_FOREIGN_AREA = re.compile(r"\D*[1-9]\d\d\D*", re.ASCII)
_WHOLE_SUBSCRIBER = 8  # a bracket around so many digits holds the number itself


def arranged(text: str, *, international: bool) -> str:
    """The Brazilian number with its area code in front; raises PhoneRejected.

    `text` is one number of digits and punctuation. `international`: its country
    code is marked as one. What is grouped as no Brazilian would is refused.
    """
    _refuse_documents(text)
    for group in _BRACKETS.finditer(text):
        inside = _digits_of(group[1])
        if not inside or len(inside) >= _WHOLE_SUBSCRIBER:
            continue
        if _FOREIGN_AREA.fullmatch(group[1]):
            raise PhoneRejected(Reason.INVALID, "an area code of Brazil (DDD) has two digits")
        head = _HEAD_AND_NINE if _LONE_NINE.search(group[1]) else _HEAD
        before = _digits_of(text[: group.start()])
        if not head.fullmatch(before + inside):
            after = _digits_of(text[group.end() :])
            return _area_to_the_front(before, inside, after, international=international)
    _refuse_bare_area_behind(text)
    return text


def _digits_of(text: str) -> str:
    return re.sub(r"\D", "", text)


# Runs of digits: CPF, CPF without its dots, PIS, and both with a digit lost.
_DOCUMENTS = {(3, 3, 3, 2), (3, 3, 3, 1), (9, 2), (3, 5, 2, 1)}


def _refuse_documents(text: str) -> None:
    lengths = tuple(map(len, re.findall(r"\d+", text)))
    bare = "(" not in text and "[" not in text
    if (bare and lengths in _DOCUMENTS) or re.search(r"\d\d ?- ?\d\Z", text, re.ASCII):
        raise PhoneRejected(Reason.INVALID, "grouped like a document, not like a phone")


_AREA = re.compile(r"0?([1-9]{2})")
_COUNTRY_AND_SUBSCRIBER = re.compile(r"((?:00(?:\d\d)?)?55)?(9\d{8}|[2-9]\d{7})", re.ASCII)


def _area_to_the_front(before: str, inside: str, after: str, *, international: bool) -> str:
    area = _AREA.fullmatch(inside)
    rest = _COUNTRY_AND_SUBSCRIBER.fullmatch(before)
    if area is None or rest is None or after:
        raise PhoneRejected(Reason.INVALID, "digits in brackets stand where no area code (DDD) does")
    country, subscriber = rest.groups()
    if country == "55" and not international:  # or DDD 55, and then two area codes
        raise PhoneRejected(Reason.INVALID, "two area codes (DDD), or a country code without its +")
    return f"{'+55 ' if country else ''}({area[1]}) {subscriber}"


_SUBSCRIBER = re.compile(r"9\d{8}|[2-9]\d{7}", re.ASCII)
_AREA_BEHIND = re.compile(r"\d\d|0[1-9]{2}", re.ASCII)
_PAIR = re.compile(r"\d\d", re.ASCII)


def _refuse_bare_area_behind(text: str) -> None:
    """`99999-0001 11`: without brackets nobody can be sure, so it is not turned round.

    Where a blank or mark parts two digits in front of the number, those are the
    area code, and the last two belong to it: `91 9 8888 00 01`. So do the last two
    of a number in pairs, unless they could be an area code: `9198888 00 01`.
    """
    runs = re.findall(r"\d+", text)
    if len(runs) < 2 or not _AREA_BEHIND.fullmatch(runs[-1]):
        return
    if _PAIR.fullmatch(runs[-2]) and not _AREA.fullmatch(runs[-1]):
        return
    digits = "".join(runs[:-1])
    breaks = set(accumulate(map(len, runs)))
    for start in (len(digits) - 8, len(digits) - 9):
        if (
            start >= 0
            and start + 2 not in breaks
            and _SUBSCRIBER.fullmatch(digits, start)
            and _BEFORE_AREA.fullmatch(digits, 0, start)
        ):
            raise PhoneRejected(Reason.DDD, "the area code (DDD) goes before the number")
