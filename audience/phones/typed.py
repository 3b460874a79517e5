"""What a person typed or a spreadsheet exported, read down to digits.

Nothing is thrown away in silence: a character that has no place in a number
rejects the text, so digits of a link, a price or a second number never join.
"""

import re
import unicodedata
from dataclasses import dataclass
from itertools import pairwise
from urllib.parse import unquote

from audience.phones import grouping
from audience.phones.rejection import PhoneRejected, Reason

# Room for a link with a long text behind the number; a bound keeps every step cheap.
MAX_INPUT = 4096


@dataclass(frozen=True, slots=True)
class Typed:
    """Digits as written. `international`: the country code is among them.

    `area_marked`: the first two digits stand in parentheses, as an area code.
    """

    digits: str
    international: bool
    area_marked: bool


def clean(raw: str) -> str:
    """The text in plain characters, blanks collapsed, spreadsheet guards off.

    Decimal digits of any script become ASCII; invisible marks go; every dash is
    `-`. Superscripts and circled digits are no decimal digits and stay, to be
    rejected.
    """
    text = raw.strip()
    if len(text) > MAX_INPUT:
        raise PhoneRejected(Reason.INVALID, f"longer than {MAX_INPUT} characters, not a phone")
    plain = "".join(map(_plain_char, text))
    plain = re.sub(r"[ \t]+", " ", plain)
    # Export guards against formulas: '5511…, ="5511…", “5511…”.
    return plain.strip().lstrip(" ='\"`´‘’“”").rstrip(" '\"`´‘’“”").strip()


def read(text: str, region: str) -> Typed:
    """Read one cleaned text (see `clean`), written in `region`; raises PhoneRejected."""
    if not text:
        raise PhoneRejected(Reason.EMPTY, "nothing was given")
    text, international = _out_of_link(text)
    text = _out_of_spreadsheet(text)
    text, blanked = _without_carrier_blank(text)
    text = _without_extension(text)
    _refuse_documents(text)
    number = _one_number(text)
    typed = _digits(number, international=international)
    if blanked and _WITH_CARRIER.fullmatch(typed.digits):
        raise PhoneRejected(Reason.INVALID, "two digits too many: the xx already stands for the carrier's")
    if not _is_brazilian(typed, region):
        return typed
    arranged = grouping.arranged(number, international=typed.international)
    return _digits(arranged, international=international)


_BRAZIL_ABROAD = re.compile(r"(?:00)?55")
# A carrier between: only where ten or eleven digits follow, since 0049 551… is Göttingen.
_BRAZIL_BY_CARRIER = re.compile(r"00\d\d55\d{10,11}", re.ASCII)


def _is_brazilian(typed: Typed, region: str) -> bool:
    if typed.international or typed.digits.startswith("00"):
        by_carrier = region == "BR" and _BRAZIL_BY_CARRIER.fullmatch(typed.digits)
        return bool(by_carrier or _BRAZIL_ABROAD.match(typed.digits))
    return region == "BR"


def _plain_char(char: str) -> str:
    if char.isascii():
        return "\n" if char in "\r\v\f" else char
    category = unicodedata.category(char)
    if category == "Nd":
        return str(unicodedata.decimal(char))
    if category == "Cf":
        return ""
    if category == "Zs":
        return " "
    if category in ("Zl", "Zp"):
        return "\n"
    if category == "Pd" or char == "\u2212":
        return "-"
    # Full-width and small forms only: NFKC of a superscript would be a digit.
    if unicodedata.decomposition(char).startswith(("<wide>", "<narrow>", "<small>")):
        return unicodedata.normalize("NFKC", char)
    return char


_SCHEME = re.compile(r"(?:tel|sms|smsto|callto|whatsapp) ?: ?(?!//)", re.I)
_PARAMETERS = re.compile(r"((?:;[a-z-]+=[^;?]*)*)(?:\?[^?]*)?\Z", re.I)
_CONTEXT = re.compile(r";phone-context=(\+[0-9.-]+)", re.I)
_HOST = r"(?:https?://)?(?:www\.)?(?:wa\.me|(?:api\.|web\.)?whatsapp\.com)(?=[/?])"
_LINK = re.compile(rf"(?:{_HOST}|whatsapp://)([^?#]*)(?:\?([^#]*))?", re.I)
_PHONE_PARAMETER = re.compile(r"(?:\A|[&;?])phone=([^&;?]*)", re.I)
# A link or scheme that begins a word; one inside a link's own text=… does not.
_LINK_START = re.compile(
    rf"(?<![\w=+%&./:?-])(?:{_HOST}|(?:tel|sms|smsto|callto|whatsapp) ?:)",
    re.I,
)


def _out_of_link(text: str) -> tuple[str, bool]:
    """The number inside a `tel:` URI or a WhatsApp link, and whether it is international."""
    _refuse_several_links(text)
    if scheme := _SCHEME.match(text):
        return _out_of_uri(text[scheme.end() :]), False
    link = _LINK.match(text)
    if link is None:
        return text, False
    number = _number_of_link(link.group(1), link.group(2) or "")
    return number.lstrip("+").strip(), True


def _refuse_several_links(text: str) -> None:
    starts = [0, *(start.start() for start in _LINK_START.finditer(text)), len(text)]
    pieces = (text[begin:end] for begin, end in pairwise(starts))
    if sum(_count_digits(piece) >= 8 for piece in pieces) > 1:
        raise _several()


def _number_of_link(path: str, query: str) -> str:
    """The one number of a link; the same one twice is one, another one is refused."""
    named = [clean(unquote(value.replace("+", " "))) for value in _PHONE_PARAMETER.findall(query)]
    in_path = clean(unquote(path.strip("/")))
    if not named or (_PUNCTUATED.fullmatch(in_path) and _count_digits(in_path) >= 8):
        named.append(in_path)
    named = [number for number in named if number]
    if len({re.sub(r"\D", "", number) for number in named}) > 1:
        raise _several()
    if not named:
        raise PhoneRejected(Reason.CHARS, "a link without a number")
    return named[0]


def _out_of_uri(text: str) -> str:
    start = min((at for at in (text.find(";"), text.find("?")) if at >= 0), default=len(text))
    parameters = _PARAMETERS.match(text, start)
    if parameters is None:
        return text
    number = text[:start]
    if _PHONE_PARAMETER.search(text, start):
        raise _several()
    if context := _CONTEXT.search(parameters.group(1)):
        return number if number.startswith("+") else f"{context.group(1)} {number}"
    return number


_SCIENTIFIC = re.compile(r"[+-]?\d+(?:[.,]\d*)? ?e ?[+-]? ?\d+", re.I | re.ASCII)
_DECIMAL = re.compile(r"(\+?\d{10,})[.,](\d+)", re.ASCII)
_THOUSANDS = re.compile(r"\d{1,3}([.,])\d{3}(?:\1\d{3})+(?:[.,]0+)?", re.ASCII)


def _out_of_spreadsheet(text: str) -> str:
    """Undo what a number format adds; refuse what it took away."""
    if _SCIENTIFIC.fullmatch(text):
        raise PhoneRejected(Reason.SCIENTIFIC, "digits were lost; format the column as text and export again")
    if decimal := _DECIMAL.fullmatch(text):
        if decimal.group(2).strip("0"):
            if len(decimal.group(2)) >= 8:
                raise _several()
            raise PhoneRejected(Reason.INVALID, "a decimal number, not a phone")
        return decimal.group(1)
    if thousands := _THOUSANDS.fullmatch(text):
        mark = thousands.group(1)
        other = "," if mark == "." else "."
        return text.split(other)[0].replace(mark, "")
    return text


_CARRIER_BLANK = re.compile(r"\A(\(?(?:\+?55 ?)?\(?) ?0 ?(?:[xX]{2}|\*\*) ?")


_WITH_CARRIER = re.compile(r"(?:55)?0\d{12,}", re.ASCII)  # more than DDD and nine digits


def _without_carrier_blank(text: str) -> tuple[str, bool]:
    """`0xx11`: the Brazilian way to print "your carrier's code here"; whether it was there."""
    text, count = _CARRIER_BLANK.subn(r"\g<1>0", text)
    return text, count > 0


_EXTENSION = re.compile(
    r"(?<=[\d)\] ])(?:[;,/(\[-] ?)?(?:ramal|ram\.|r\.?|extension|extens[aã]o|ext\.?|x|\#)"
    r" ?[:.=]? ?\d{1,7} ?[)\]]?\Z",
    re.I,
)


def _without_extension(text: str) -> str:
    """Drop a trailing `ramal 20`; the line stays, its extension can't be written to."""
    if re.fullmatch(r"(?:ramal|ext(?:ension|\.)?) ?[:.]? ?\d{1,7}", text, re.I):
        raise PhoneRejected(Reason.EXTENSION, "an extension without its number")
    return _EXTENSION.sub("", text).strip()


def _refuse_documents(text: str) -> None:
    if re.fullmatch(r"\d{3}\.\d{3}\.\d{3}-\d{2}", text, re.ASCII):
        raise PhoneRejected(Reason.INVALID, "a CPF, not a phone")
    if re.fullmatch(r"\d{2}\.\d{3}\.\d{3}/\d{4}-\d{2}", text, re.ASCII):
        raise PhoneRejected(Reason.INVALID, "a CNPJ, not a phone")


_SEPARATOR = re.compile(r"[/;,|&\n\\]|(?<=[\d) ])(?:e|ou|y|o|or|and)(?=[ (+\d])", re.I)
_PUNCTUATED = re.compile(r"[0-9 ().\-+\[\]]*")


def _one_number(text: str) -> str:
    """The one number of the text; two numbers are refused, never the first taken."""
    parts = [part.strip() for part in _SEPARATOR.split(text)]
    parts = [part for part in parts if part]
    if not all(_PUNCTUATED.fullmatch(part) for part in parts):
        raise PhoneRejected(Reason.CHARS, "holds characters that no phone has")
    lengths = list(map(_count_digits, parts))
    if not any(lengths):
        raise PhoneRejected(Reason.CHARS, "holds no digit")
    if len(parts) == 1:
        return parts[0]
    if len(parts) == 2 and lengths[0] <= 5 and "/" in text:  # 11/99999-0001
        return " ".join(parts)
    if max(lengths) >= 7:
        raise _several()
    raise PhoneRejected(Reason.INVALID, "a list of short numbers, a date or a document, not a phone")


def _count_digits(text: str) -> int:
    return sum(map(str.isdigit, text))


def _several() -> PhoneRejected:
    return PhoneRejected(Reason.MULTIPLE, "more than one number; give each its own line")


_START = re.compile(r"[(\[ ]*(\+?)[(\[ ]*(?=\d)", re.ASCII)
_AREA = re.compile(r"[(\[] ?\d{2} ?[)\]]", re.ASCII)


def _digits(text: str, *, international: bool) -> Typed:
    start = _START.match(text)
    if start is None:
        raise PhoneRejected(Reason.CHARS, "does not begin like a phone")
    body = text[start.end() :]
    head, plus, tail = body.partition("+")
    if plus:
        if _count_digits(head) >= 8 and any(map(str.isdigit, tail)):
            raise _several()
        raise PhoneRejected(Reason.CHARS, "has a plus sign inside")
    digits = re.sub(r"\D", "", body)
    if len(digits) >= 16 and not _BRAZIL_BY_CARRIER.fullmatch(digits) and (len(digits) >= 20 or _two_groups(body)):
        raise _several()
    return Typed(
        digits=digits,
        international=international or bool(start.group(1)),
        area_marked=_AREA.match(text) is not None,
    )


def _two_groups(body: str) -> bool:
    """Whether a blank parts the digits into two runs that are each long enough to dial."""
    total = _count_digits(body)
    seen = 0
    for char in body:
        if char == " " and seen >= 8 and total - seen >= 8:
            return True
        seen += char.isdigit()
    return False
