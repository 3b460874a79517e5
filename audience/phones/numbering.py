"""Numbering plans: which digits are one person, and which numbers exist.

Brazil is read by its own rules (Anatel: DDD, ninth digit, carrier codes), since
libphonenumber reads `0055…` and `90…` as numbers of other countries. Every
other country is libphonenumber's.
"""

import contextlib
import re
from dataclasses import dataclass
from enum import StrEnum

import phonenumbers
from phonenumbers import PhoneNumber, PhoneNumberType, ValidationResult, shortnumberinfo

from audience.phones.rejection import PhoneRejected, Reason
from audience.phones.typed import Typed


class Line(StrEnum):
    MOBILE = "mobile"
    LANDLINE = "landline"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class Phone:
    """One reachable number.

    `identity`: canonical digits with country code, no plus (Brazilian mobile
    with the 9, Mexico 52, Argentina 549). `variants`: every spelling WhatsApp
    may use for it, the identity first. `region`: ISO country. `note`: one line
    for a person.
    """

    identity: str
    variants: tuple[str, ...]
    region: str
    line: Line
    note: str

    @property
    def e164(self) -> str:
        return f"+{self.identity}"


_BR_MOBILE_SHORT = re.compile(r"(55[1-9]{2})([6-9]\d{7})", re.ASCII)
_BR_MOBILE_LONG = re.compile(r"(55[1-9]{2})9([6-9]\d{7})", re.ASCII)
_MX_OLD = re.compile(r"521([2-9]\d{9})", re.ASCII)
_MX = re.compile(r"52([2-9]\d{9})", re.ASCII)
_AR_SHORT = re.compile(r"54([1-3]\d{9})", re.ASCII)
# Both ways to mark a mobile: the 9 from abroad, and the 15 behind the area code from home.
_AR_MARKED_TWICE = re.compile(r"549\d{2,4}15\d{6,8}(?<=\d{15})", re.ASCII)
_AR_MOBILE = re.compile(r"549([1-3]\d{9})", re.ASCII)


def canonical(digits: str) -> str:
    """The identity of international digits, by their shape alone; never rejects."""
    if match := _BR_MOBILE_SHORT.fullmatch(digits):
        return f"{match[1]}9{match[2]}"
    if match := _MX_OLD.fullmatch(digits):
        return f"52{match[1]}"
    if match := _AR_SHORT.fullmatch(digits):
        return f"549{match[1]}"
    return digits


def variants_of(digits: str) -> tuple[str, ...]:
    """Every spelling of the person behind international digits, the identity first.

    A Brazilian mobile whose eight digits would begin 2 to 5 has no short form:
    that would be somebody's landline.
    """
    identity = canonical(digits)
    if match := _BR_MOBILE_LONG.fullmatch(identity):
        return identity, f"{match[1]}{match[2]}"
    if match := _MX.fullmatch(identity):
        return identity, f"521{match[1]}"
    if match := _AR_MOBILE.fullmatch(identity):
        return identity, f"54{match[1]}"
    return (identity,)


def known_region(region: str) -> str:
    """The region in upper case; ValueError when no such country is known."""
    upper = region.strip().upper()
    if upper not in phonenumbers.SUPPORTED_REGIONS:
        raise ValueError(f"unknown region: {region!r}")
    return upper


def resolve(typed: Typed, region: str) -> Phone:
    """The Phone behind digits as written by somebody in `region`; raises PhoneRejected."""
    digits = typed.digits
    if len(digits) <= 2:
        raise PhoneRejected(Reason.INVALID, "too short for a phone")
    if typed.international:
        return _international(digits)
    _refuse_short(digits, region)
    if digits.startswith("00"):
        return _after_exit_code(digits, region)
    if region == "BR":
        return _brazil_domestic(digits, area_marked=typed.area_marked)
    return _foreign(_mexican_domestic(digits) if region == "MX" else digits, region)


def _international(digits: str) -> Phone:
    if digits.startswith("00"):  # "+0055…": a plus written before the exit code
        digits = digits[2:]
    if digits.startswith("55"):
        return _brazil(digits[2:])
    if digits.startswith("52"):
        digits = "52" + _mexican_domestic(digits[2:])
    if _AR_MARKED_TWICE.fullmatch(digits):
        digits = f"54{digits[3:]}"
    return _foreign(f"+{digits}", None)


def _after_exit_code(digits: str, region: str) -> Phone:
    """`00` + country; in Brazil a carrier's two digits may stand between.

    `0055` is always Brazil: libphonenumber takes 55 for a carrier and finds
    people in France or Peru. Where both readings are numbers, neither is taken.
    """
    rest = digits[2:]
    if region != "BR" or rest.startswith("55"):
        return _international(rest)
    readings = []
    for digits_abroad in (rest, rest[2:]):
        with contextlib.suppress(PhoneRejected):
            readings.append(_international(digits_abroad))
    if not readings:
        raise PhoneRejected(Reason.INVALID, "no number of any country follows the 00")
    if len(readings) > 1:
        raise PhoneRejected(Reason.AMBIGUOUS, "two countries can be read; write it with + and country code")
    return readings[0]


# Anatel's service codes: 190, 180, 188…, and the carriers' 103xx, 105xx, 106xx.
# libphonenumber knows but some of them.
_BR_SHORT = re.compile(r"1\d{2}|10[356]\d{2}", re.ASCII)


def _refuse_short(national: str, region: str) -> None:
    if not 3 <= len(national) <= 6:
        return
    code = phonenumbers.country_code_for_region(region)
    short = PhoneNumber(country_code=code, national_number=int(national))
    if (
        shortnumberinfo.is_emergency_number(national, region)
        or shortnumberinfo.is_valid_short_number_for_region(short, region)
        or (region == "BR" and _BR_SHORT.fullmatch(national))
    ):
        raise PhoneRejected(Reason.SERVICE, "an emergency or service number")
    raise PhoneRejected(Reason.INVALID, "too short for a phone")


# --- Brazil ---------------------------------------------------------------

_DDDS_BY_FIRST_DIGIT = {
    "1": "123456789",
    "2": "12478",
    "3": "1234578",
    "4": "123456789",
    "5": "1345",
    "6": "123456789",
    "7": "134579",
    "8": "123456789",
    "9": "123456789",
}


def _is_ddd(digits: str) -> bool:
    return digits[1] in _DDDS_BY_FIRST_DIGIT.get(digits[0], "")


_DDD = "|".join(f"{first}[{seconds}]" for first, seconds in _DDDS_BY_FIRST_DIGIT.items())
_PLAIN_MOBILE = re.compile(rf"\+?(55(?:{_DDD})9[6-9]\d{{7}})", re.ASCII)


def plain_mobile(text: str, region: str) -> Phone | None:
    """A Brazilian mobile in 13 digits and nothing else, as exports have them: the long way says the same of it,
    in ten times the time. None where the long way has to look.
    """
    match = _PLAIN_MOBILE.fullmatch(text)
    if match is None or not (text.startswith("+") or region == "BR") or len(set(match[1][2:])) == 1:
        return None
    return _of_brazil(match[1])


def _of_brazil(written: str) -> Phone:
    identity = canonical(written)
    line = Line.LANDLINE if len(identity) == 12 else Line.MOBILE
    added = ", ninth digit added" if identity != written else ""
    return Phone(identity, variants_of(identity), "BR", line, f"{line.value} of Brazil, DDD {written[2:4]}{added}")


def _brazil_domestic(digits: str, *, area_marked: bool) -> Phone:
    """Digits without country code sign: DDD 55 and country 55 are told by length."""
    if digits.startswith("55"):
        if len(digits) >= 12:
            return _brazil(digits[2:])
        if len(digits) == 10 and not area_marked:
            raise PhoneRejected(Reason.AMBIGUOUS, "DDD 55 without a 9, or country 55 without DDD")
    return _brazil(digits)


def _brazil(national: str) -> Phone:
    """`national` is what follows +55, trunk and carrier prefixes allowed."""
    _refuse_short(national, "BR")
    national = _without_trunk(national)
    _refuse_brazilian_service(national)
    if len(national) in (8, 9):
        raise PhoneRejected(Reason.DDD, "the area code (DDD) is missing")
    if len(national) not in (10, 11) or len(set(national)) == 1:
        raise PhoneRejected(Reason.INVALID, "no number of Brazil: DDD and 8 or 9 digits are needed")
    ddd, subscriber = national[:2], national[2:]
    if not re.fullmatch(r"9\d{8}|[2-9]\d{7}", subscriber):
        raise PhoneRejected(Reason.INVALID, "neither a mobile (9 and 8 digits) nor a landline (2 to 5) of Brazil")
    if not _is_ddd(ddd):
        raise PhoneRejected(Reason.DDD, "this area code (DDD) does not exist")
    return _of_brazil(f"55{national}")


def _without_trunk(national: str) -> str:
    """Take off `0`, `0` + carrier, and the collect-call `90` (+ carrier)."""
    for prefix in ("90", "0"):
        if not national.startswith(prefix):
            continue
        rest = national[len(prefix) :]
        if prefix == "90" and len(national) < 12:
            continue
        return rest[2:] if len(rest) in (12, 13) else rest
    return national


_SERVICE_TYPES = frozenset(
    {
        PhoneNumberType.TOLL_FREE,
        PhoneNumberType.PREMIUM_RATE,
        PhoneNumberType.SHARED_COST,
        PhoneNumberType.UAN,
        PhoneNumberType.VOICEMAIL,
        PhoneNumberType.PAGER,
    }
)


def _refuse_brazilian_service(national: str) -> None:
    # 0800, 0300, 4004…: no person's, and their "DDD" would only confuse.
    if 8 <= len(national) <= 11:
        number = PhoneNumber(country_code=55, national_number=int(national))
        _refuse_service(number)


def _refuse_service(number: PhoneNumber) -> None:
    if phonenumbers.number_type(number) in _SERVICE_TYPES:
        raise PhoneRejected(Reason.SERVICE, "a service line (toll-free, shared cost or premium), not a person")


# --- every other country --------------------------------------------------


def _mexican_domestic(digits: str) -> str:
    """Mexico dropped 01, 044, 045 and the mobile 1 in 2019-2020; people still type them."""
    return re.sub(r"\A(52)?(?:01|04[45]|1)(?=\d{10}\Z)", r"\g<1>", digits)


def _foreign(text: str, region: str | None) -> Phone:
    try:
        number = phonenumbers.parse(text, region)
    except phonenumbers.NumberParseException as error:
        raise PhoneRejected(Reason.INVALID, "no number of any country") from error
    if number.country_code == 55:
        return _brazil(phonenumbers.national_significant_number(number))
    if region is None and len(national := str(number.national_number)) <= 6:
        _refuse_short(national, phonenumbers.region_code_for_country_code(number.country_code or 0))
    if not phonenumbers.is_valid_number(number):
        _refuse_invalid(number)
    _refuse_service(number)
    written = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)[1:]
    identity = canonical(written)
    country = phonenumbers.region_code_for_number(number) or "001"
    return Phone(identity, variants_of(identity), country, _line(number), f"number of {country}")


def _refuse_invalid(number: PhoneNumber) -> None:
    possible = phonenumbers.is_possible_number_with_reason(number)
    if possible == ValidationResult.IS_POSSIBLE_LOCAL_ONLY:
        raise PhoneRejected(Reason.DDD, "the area code is missing")
    raise PhoneRejected(Reason.INVALID, "no such number in that country; is the country code there, with a +?")


def _line(number: PhoneNumber) -> Line:
    if number.country_code == 54:  # the 9 marks a mobile, and the identity always has it
        return Line.ANY
    kind = phonenumbers.number_type(number)
    if kind == PhoneNumberType.MOBILE:
        return Line.MOBILE
    return Line.LANDLINE if kind == PhoneNumberType.FIXED_LINE else Line.ANY
