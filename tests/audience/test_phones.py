"""Phone identity: recorded cases, field reports (B0xx), and properties on any text."""

import io
import time
from pathlib import Path

import phonenumbers
import pytest
from django.core.management.base import CommandError
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from audience import phones
from audience.management.commands.phone_check import Command, unescape
from audience.phones import IdKind, Line, Phone, PhoneRejected, Reason

CASES = Path(__file__).parent.parent / "cases" / "phones.tsv"
ANA = "5511999990001"


def verdict(raw: str, region: str = "BR") -> str:
    return phones.explain(raw, region=region).verdict


def recorded() -> list[tuple[str, str]]:
    rows = [line.split("\t") for line in CASES.read_text(encoding="utf-8").split("\n")]
    return [(unescape(row[0]), row[1]) for row in rows if len(row) > 1]


def test_every_recorded_row_is_read() -> None:
    assert len(recorded()) == 35


@pytest.mark.parametrize(("raw", "expected"), recorded())
def test_recorded_case(raw: str, expected: str) -> None:
    assert verdict(raw) == expected


@pytest.mark.parametrize(
    "raw",
    [
        "551199990001",  # B001, B004: eight digits that begin 6 to 9 get the 9
        "11 9999-0001",
        "+55 (0) 11 99999-0001",
        "+55 011 99999-0001",
        "(0xx11) 99999-0001",
        "0XX11 99999-0001",
        "(0**11) 99999-0001",
        "(011) 99999-0001",
        "0 31 11 99999-0001",
        "0 55 11 99999-0001",
        "+55 0 15 11 99999-0001",
        "90 15 11 99999-0001",
        "+0055 11 99999-0001",
        "+٥٥١١٩٩٩٩٩٠٠٠١",  # B014
        "𝟓𝟓𝟏𝟏𝟗𝟗𝟗𝟗𝟗𝟎𝟎𝟎𝟏",  # mathematical digits are decimal digits
        "5511999990001,00",  # B017
        "5.511.999.990.001",
        "5,511,999,990,001",
        "5.511.999.990.001,00",
        '"5511999990001"',  # B025
        "'+55 11 99999-0001",
        '="+5511999990001"',
        "“5511999990001”",
        "https://api.whatsapp.com/send?phone=5511999990001&text=promo%2050",  # B026
        "https://web.whatsapp.com/send/?text=1&phone=%2B55%2011%2099999-0001",
        "whatsapp://send?phone=5511999990001",
        "wa.me/5511999990001",
        "HTTPS://WA.ME/+5511999990001?text=10",
        "tel:+55-11-99999-0001",
        "Tel: (11) 99999-0001",
        "tel:+55-11-99999-0001;ext=20",
        "tel:99999-0001;phone-context=+5511",
        "sms:+5511999990001?body=10",
        "whatsapp:+5511999990001",
        "11/99999-0001",
        "11 99999-0001;",
        "11–99999—0001",  # the dashes of a word processor
        "11 99999-0001 ramal 20",
        "551199990001@c.us",
        "5511999990001_1:7@s.whatsapp.net",
    ],
)
def test_another_spelling_of_ana(raw: str) -> None:
    assert verdict(raw) == ANA


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("+551133334444", "551133334444"),  # B004
        ("(11) 3333-4444 x20", "551133334444"),
        ("(11) 3333-4444, r. 20", "551133334444"),
        ("1133334444 - Ramal: 20", "551133334444"),
        ("(55) 3333-4444", "555533334444"),
        ("0055 41 99999-0001", "5541999990001"),  # B008
        ("55999990001", "5555999990001"),  # B011
        ("0 55 9999-0001", "5555999990001"),
        ("555599990001", "5555999990001"),
        ("+54 9 11 2345-6789", "5491123456789"),  # B013
        ("+54 11 2345-6789", "5491123456789"),
        # Marked as a mobile twice, by the 9 from abroad and the 15 from home.
        ("+54 9 11 15 2345-6789", "5491123456789"),
        ("+54 9 351 15 512-3456", "5493515123456"),
        ("+54 9 2966 15 42-3456", "5492966423456"),
        ("+54 9 11 1512-3456", "5491115123456"),
        ("+52 1 55 1234 5678", "525512345678"),
        ("00351 912 345 678", "351912345678"),
        ("00 15 351 912 345 678", "351912345678"),
        ("+1 (415) 555-2671", "14155552671"),
    ],
)
def test_accepted(raw: str, expected: str) -> None:
    assert verdict(raw) == expected


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("5.51E+12", "scientific"),  # B016
        ("5,5119999900 e12", "scientific"),
        ("5.511999990001E+12", "scientific"),
        ("99999-0001", "ddd"),  # B023: possible for libphonenumber, nobody's
        ("3333-4444", "ddd"),
        ("+55 99999-0001", "ddd"),
        ("5500999990001", "ddd"),  # B028
        ("5510999990001", "ddd"),
        ("23 99999-0001", "ddd"),
        ("5533334444", "ambiguous"),
        ("11999990001 11988880002", "multiple"),  # B022
        ("11 99999-0001 - 11 98888-0002", "multiple"),
        ("11 99999-0001 ou 11 98888-0002", "multiple"),
        ("11 99999-0001 e (11) 98888-0002", "multiple"),
        ("11 99999-0001\n11 98888-0002", "multiple"),
        ("11 99999-0001;11 98888-0002", "multiple"),
        ("+5511999990001+5511988880002", "multiple"),
        ("1199999000111988880002", "multiple"),
        ("(11) 3333-4444/4445", "multiple"),
        ("ramal 20", "extension"),
        ("192", "service"),
        ("180", "service"),
        ("+55 190", "service"),
        ("10315", "service"),
        ("0800 123 4567", "service"),
        ("4004-1234", "service"),
        ("529.982.247-25", "invalid"),
        ("12.345.678/0001-95", "invalid"),
        ("12/05/2024", "invalid"),
        ("5511999990001.5", "invalid"),
        ("351912345678", "invalid"),  # B010: never a plus put before bare digits
        ("+90 11999990001", "invalid"),
        ("11 89999-0001", "invalid"),
        ("00000000000", "invalid"),
        ("11①999990001", "chars"),
        ("ligar 11 99999-0001", "chars"),
        ("0800-FLORES", "chars"),
        ("https://ex.test/5511999990001", "chars"),
        ("wa.me/message/ABC123", "chars"),
        ("ana@example.test", "chars"),
        ("-1+1", "chars"),
        ("5511999990001\x00", "chars"),
        ("5511999990001\ud800", "chars"),
        ("-", "chars"),
        (" \u200b\ufeff", "empty"),
        ("''", "empty"),
        ("111222333444555@lid", "lid"),  # B029
        ("5511999990001:3@lid", "lid"),
        ("BR.ENT.5511988880002", "bsuid"),
        ("5511999990001-1500000000@g.us", "group"),  # B035
        ("120363111111111111@newsletter", "newsletter"),  # B037
        ("status@broadcast", "broadcast"),
        ("0@c.us", "system"),
    ],
)
def test_rejected(raw: str, reason: str) -> None:
    assert verdict(raw) == f"REJECT:{reason}"


@pytest.mark.parametrize(
    ("raw", "region", "expected"),
    [
        ("(415) 555-2671", "US", "14155552671"),
        ("1-415-555-2671", "us", "14155552671"),
        ("011 55 11 99999-0001", "US", ANA),
        ("+55 11 9999-0001", "US", ANA),
        ("555-2671", "US", "REJECT:ddd"),
        ("911", "US", "REJECT:service"),
        ("1 800 356 9377", "US", "REJECT:service"),
        ("55 1234 5678", "MX", "525512345678"),
        ("044 55 1234 5678", "MX", "525512345678"),
        ("521 55 1234 5678", "MX", "525512345678"),
        ("0055 11 99999-0001", "MX", ANA),
        ("011 15 2345-6789", "AR", "5491123456789"),
        ("5491123456789", "AR", "5491123456789"),
        ("541123456789", "AR", "5491123456789"),
        ("912 345 678", "PT", "351912345678"),
        ("00351912345678", "PT", "351912345678"),
        ("112", "PT", "REJECT:service"),
        ("123", "PT", "REJECT:invalid"),
        (ANA, "PT", "REJECT:invalid"),
    ],
)
def test_region_decides_where_no_country_is_written(raw: str, region: str, expected: str) -> None:
    assert verdict(raw, region) == expected


def test_00_55_is_brazil_for_every_ddd() -> None:
    """B008: libphonenumber alone finds most of these abroad, and valid."""
    ddds = [n for n in range(11, 100) if phonenumbers.is_valid_number(phonenumbers.parse(f"+55{n}999990001"))]
    assert len(ddds) == 67
    assert [verdict(f"0055 {n} 99999-0001") for n in ddds] == [f"55{n}999990001" for n in ddds]


def test_two_countries_behind_00_are_never_guessed() -> None:
    """Austria (43), or carrier 43 and then Portugal: both numbers exist."""
    assert verdict("00 43 351 912 345 678") == "REJECT:ambiguous"


def test_a_phone_tells_its_spellings() -> None:
    phone = phones.parse("11 9999-0001")
    assert (phone.identity, phone.e164, phone.region) == (ANA, f"+{ANA}", "BR")
    assert phone.variants == (ANA, "551199990001")
    assert phone.line is Line.MOBILE
    assert "ninth digit added" in phone.note


def test_a_landline_and_a_new_mobile_have_one_spelling() -> None:
    """Without its 9, `11 93333-4444` would be somebody's landline."""
    assert phones.parse("11 3333-4444").variants == ("551133334444",)
    assert phones.parse("11 93333-4444").variants == ("5511933334444",)


@pytest.mark.parametrize(
    ("spelling", "variants"),
    [
        ("551199990001", (ANA, "551199990001")),
        ("5215512345678", ("525512345678", "5215512345678")),
        ("541123456789", ("5491123456789", "541123456789")),
        ("551133334444", ("551133334444",)),
        ("351912345678", ("351912345678",)),
        ("541123", ("541123",)),
    ],
)
def test_variants_of_a_spelling(spelling: str, variants: tuple[str, ...]) -> None:
    assert phones.variants_of(spelling) == variants
    assert phones.canonical(spelling) == variants[0]


@pytest.mark.parametrize(
    ("jid", "kind", "value", "identity"),
    [
        ("551199990001@c.us", IdKind.PHONE, "551199990001", ANA),  # B001, B002, B005
        ("5511999990001:12@s.whatsapp.net", IdKind.PHONE, ANA, ANA),  # B038
        ("5511999990001_1:12@s.whatsapp.net", IdKind.PHONE, ANA, ANA),
        ("5511999990001@hosted", IdKind.PHONE, ANA, ANA),
        ("5511999990001", IdKind.PHONE, ANA, ANA),  # the Cloud API's wa_id
        ("+5491123456789", IdKind.PHONE, "5491123456789", "5491123456789"),  # B013
        ("5520999990001@c.us", IdKind.PHONE, "5520999990001", "5520999990001"),
        ("551133334444@c.us", IdKind.PHONE, "551133334444", "551133334444"),
        ("558001234567@c.us", IdKind.PHONE, "558001234567", "558001234567"),
        ("111222333444555@lid", IdKind.LID, "111222333444555", None),  # B029
        ("111222333444555:31@LID", IdKind.LID, "111222333444555", None),
        ("111222333444555@hosted.lid", IdKind.LID, "111222333444555", None),
        ("BR.1000000000000000001", IdKind.BSUID, "BR.1000000000000000001", None),
        ("120363012345678901@g.us", IdKind.GROUP, "120363012345678901", None),  # B034
        ("5511999990001-1500000000@g.us", IdKind.GROUP, "5511999990001-1500000000", None),  # B035
        ("120363111111111111@newsletter", IdKind.NEWSLETTER, "120363111111111111", None),  # B037
        ("1712345678@broadcast", IdKind.BROADCAST, "1712345678", None),
        ("status@broadcast", IdKind.STATUS, "status", None),
        ("0@c.us", IdKind.SYSTEM, "0", None),  # B044
        ("", IdKind.EMPTY, "", None),
        (None, IdKind.EMPTY, "", None),
        ("@c.us", IdKind.EMPTY, "", None),
        (":12@s.whatsapp.net", IdKind.EMPTY, "", None),
        ("867051314767696@bot", IdKind.UNKNOWN, "867051314767696", None),
        ("ana@c.us", IdKind.UNKNOWN, "ana", None),
        ("٥٥١١٩٩٩٩٩٠٠٠١@c.us", IdKind.UNKNOWN, "٥٥١١٩٩٩٩٩٠٠٠١", None),
        ("9" * 300 + "@c.us", IdKind.UNKNOWN, "", None),
    ],
)
def test_ids_of_whatsapp(jid: str | None, kind: IdKind, value: str, identity: str | None) -> None:
    found = phones.identity_of_whatsapp_id(jid)
    assert (found.kind, found.value, found.identity) == (kind, value, identity)
    assert bool(found.variants) is (identity is not None)


def test_an_opt_out_by_the_short_form_meets_the_long_one() -> None:
    """B002: the two sides share a spelling."""
    stop = phones.identity_of_whatsapp_id("551199990001@c.us")
    assert stop.identity == phones.parse(ANA).identity
    assert set(stop.variants) == set(phones.parse(ANA).variants)


def test_an_unknown_region_is_the_callers_fault() -> None:
    with pytest.raises(ValueError, match="unknown region"):
        phones.parse(ANA, region="XX")


# --- properties -----------------------------------------------------------

ANY_TEXT = st.text(st.characters(exclude_categories=())) | st.text("0123456789+-() ./;,'=\"@:eExXaou\n\x00\u202a²٥9055")
REGIONS = st.sampled_from(["BR", "US", "MX", "AR", "PT", "IT", "DE"])
BRAZILIAN = st.from_regex(r"\A55[1-9][1-9]9?[2-9][0-9]{7}\Z")
MEXICAN = st.from_regex(r"\A521?(?:55|33|81)[1-9][0-9]{7}\Z")
ARGENTINE = st.from_regex(r"\A549?11[2-6][0-9]{7}\Z")
FOREIGN = st.from_regex(r"\A[1-9][0-9]{6,14}\Z")


def outcome(raw: str, region: str) -> Phone | PhoneRejected:
    try:
        return phones.parse(raw, region=region)
    except PhoneRejected as rejected:
        return rejected


@settings(max_examples=400)
@given(raw=ANY_TEXT, region=REGIONS)
def test_any_text_is_a_phone_or_has_a_reason(raw: str, region: str) -> None:
    found = outcome(raw, region)
    if isinstance(found, PhoneRejected):
        assert found.reason in Reason
        assert found.explanation.isprintable()
    else:
        assert found.identity.isascii()
        assert found.identity.isdecimal()
        assert found.variants[0] == found.identity


@given(jid=ANY_TEXT | st.builds("{}@{}".format, ANY_TEXT, st.sampled_from(["c.us", "lid", "g.us"])))
def test_any_id_has_a_kind(jid: str) -> None:
    found = phones.identity_of_whatsapp_id(jid)
    assert (found.identity is not None) is (found.kind is IdKind.PHONE)


@settings(max_examples=300)
@given(digits=BRAZILIAN | MEXICAN | ARGENTINE | FOREIGN)
def test_every_spelling_is_the_same_person(digits: str) -> None:
    phone = outcome(f"+{digits}", "BR")
    assume(isinstance(phone, Phone))
    assert isinstance(phone, Phone)
    again = phones.parse(phone.e164)
    assert (again.identity, again.variants, again.line) == (phone.identity, phone.variants, phone.line)
    for variant in phone.variants:
        assert phones.parse(f"+{variant}").identity == phone.identity
        assert phones.identity_of_whatsapp_id(f"{variant}@c.us").identity == phone.identity
        assert phones.variants_of(variant) == phone.variants


@given(digits=BRAZILIAN)
def test_brazilian_digits_need_no_plus(digits: str) -> None:
    assert verdict(digits) == verdict(f"+{digits}")


@given(digits=BRAZILIAN, guard=st.sampled_from(["'{}", '="{}"', "{}.0", "tel:+{}", "\ufeff{} "]))
def test_a_round_trip_through_a_spreadsheet_keeps_the_person(digits: str, guard: str) -> None:
    assert verdict(guard.format(digits)) == verdict(digits)


@pytest.mark.parametrize(
    "raw",
    [
        "5" * 5_000_000,
        " " * 5_000_000,
        "a\u0315\u0300" * 1_000_000,
        "5 " * 2048,
        "1;" * 2048,
        "(1" * 2048,
        "tel:" + ";a=b" * 1000,
        "tel:" + " " * 4000 + ";ext=",
        "https://api.whatsapp.com/send?" + "phone=" * 600,
        "11 ramal " * 400,
        "1.111" * 800,
        "x:x@" * 1000,
        "1 e " * 1000,
    ],
    ids=lambda raw: raw[:8].strip(),
)
def test_a_hostile_text_costs_little(raw: str) -> None:
    begun = time.process_time()
    assert verdict(raw).startswith("REJECT:")
    assert time.process_time() - begun < 0.5


# --- the command ----------------------------------------------------------


def run(*numbers: str, region: str = "BR", stdin: bool = False, unescape: bool = False) -> list[str]:
    out = io.StringIO()
    command = Command(stdout=out)
    command.handle(numbers=list(numbers), region=region, stdin=stdin, unescape=unescape)
    return out.getvalue().splitlines()


def test_the_command_prints_a_line_per_number() -> None:
    lines = run("+55 (11) 99999-0001", "", "N/A")
    assert [line.split("\t")[0] for line in lines] == [ANA, "REJECT:empty", "REJECT:chars"]
    assert all(len(line.split("\t")) == 2 and line.split("\t")[1] for line in lines)


def test_the_command_reads_escapes_on_request() -> None:
    assert run(r"\ufeff5511999990001", unescape=True)[0].startswith(f"{ANA}\t")
    assert run(r"11 99999-0001\n11 98888-0002", unescape=True)[0].startswith("REJECT:multiple\t")
    assert run(r"\ufeff5511999990001")[0].startswith("REJECT:")


def test_the_command_reads_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    typed = io.TextIOWrapper(io.BytesIO(b"5511999990001\r\n\n\xff\n190"), encoding="utf-8")
    monkeypatch.setattr("sys.stdin", typed)
    verdicts = [line.split("\t")[0] for line in run(stdin=True)]
    assert verdicts == [ANA, "REJECT:empty", "REJECT:chars", "REJECT:service"]


def test_the_command_needs_a_source_and_a_real_region() -> None:
    with pytest.raises(CommandError, match="--stdin"):
        run()
    with pytest.raises(CommandError, match="not both"):
        run(ANA, stdin=True)
    with pytest.raises(CommandError, match="region"):
        run(ANA, region="XX")


def test_the_command_takes_its_arguments_without_the_database() -> None:
    command = Command()
    options = command.create_parser("manage.py", "phone_check").parse_args(["--region", "PT", "1"])
    assert (options.region, options.numbers, options.stdin) == ("PT", ["1"], False)
    assert list(command.requires_system_checks) == []
    assert not command.requires_migrations_checks


@pytest.mark.parametrize(
    ("escaped", "text"),
    [
        (r"a\u00a0b", "a\u00a0b"),
        (r"\U0001F600\x41\t\r\0", "\U0001f600A\t\r\0"),
        (r"\\n", r"\n"),
        (r"\q \u12 \U99999999", r"\q \u12 \U99999999"),
        (r"\ud800", "\ud800"),
    ],
)
def test_unescape(escaped: str, text: str) -> None:
    assert unescape(escaped) == text


@given(
    st.sampled_from(["", "+"]),
    st.integers(10, 99),
    st.integers(0, 999_999_999),
    st.sampled_from(["BR", "MX", "US", "AR"]),
)
def test_the_short_way_for_plain_mobiles_says_what_the_long_way_says(
    plus: str, ddd: int, subscriber: int, region: str
) -> None:
    for digits in (f"{subscriber:09}", f"9{subscriber % 10**8:08}", f"{subscriber % 10 or 9}" * 9):
        text = f"{plus}55{ddd}{digits}"
        # A blank behind it is no part of the number, and bars the short way.
        assert str(outcome(text, region)) == str(outcome(f"{text} ", region))
