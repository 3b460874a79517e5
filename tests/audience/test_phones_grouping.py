"""Digits that stand in an order or in groups that no Brazilian number has."""

import time

import pytest

from audience import phones

ANA = "5511999990001"
BIA = "5521998880002"
SHOP = "551133334444"


def verdict(raw: str, region: str = "BR") -> str:
    return phones.explain(raw, region=region).verdict


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("99999-0001 (11)", ANA),
        ("99999-0001(11)", ANA),
        ("99999.0001 [11]", ANA),
        ("9 9999-0001 (11)", ANA),
        ("(9)9999-0001 (11)", ANA),
        ("(99999-0001) (11)", ANA),
        ("99999-0001 - (11)", ANA),
        ("99999-0001 (11", ANA),
        ("99999-0001 ( 11 )", ANA),
        ("99999-0001 (011)", ANA),
        ("9999-0001 (11)", ANA),
        ("+55 99999-0001 (11)", ANA),
        ("0055 99999-0001 (11)", ANA),
        ("tel:99999-0001 (11)", ANA),
        ("wa.me/+55 99999-0001 (11)", ANA),
        ("9888-0002 (21)", BIA),
        ("3333-4444 (11)", SHOP),
        ("3333-4444 (11) ramal 20", SHOP),
        ("3333-4444 (55)", "555533334444"),
        ("99999-0001 (55)", "5555999990001"),
    ],
)
def test_an_area_code_in_brackets_may_follow(raw: str, expected: str) -> None:
    assert verdict(raw) == expected


@pytest.mark.parametrize("number", ["8888-0002", "9888-0002", "6888-0002", "3333-4444", "4004-1234", "98888-0002"])
@pytest.mark.parametrize("area", ["11", "21", "55", "99", "23"])
def test_before_or_behind_is_the_same_number(number: str, area: str) -> None:
    assert verdict(f"{number} ({area})") == verdict(f"({area}) {number}")


@pytest.mark.parametrize(
    "raw",
    [
        "99999 (11) 0001",
        "9999 (90)001",
        "1199999(00)01",
        "(11) 99999-00 (01)",
        "11 99999-0001 (11)",
        "(11) 99999-0001 (11)",
        "(11) 3333-4444 (20)",
        "55 99999-0001 (11)",
        "99999-0001 (00)",
        "99999-0001 (10)",
        "9999-000 (11)",
        "4912-3456 (00)",
        "99999-000 (1)",
        "(212) 555-2368",
        "[212] 555-2368",
        "( 212 ) 555-2368",
        "(999) 990-0014",
        "+55 (212) 555-2368",
        "(551) 555-2368",
        "(119) 9999-0001",
        "(1199) 999-0001",
        "555-2368 (212)",
    ],
)
def test_brackets_that_hold_no_area_code(raw: str) -> None:
    assert verdict(raw) == "REJECT:invalid"


@pytest.mark.parametrize(
    "raw",
    [
        "99999-0001 11",
        "99999-0001 - 11",
        "99999.0001.11",
        "9 9999-0001 11",
        "9999-0001 11",
        "8888-0001 11",
        "3333-4444 11",
        "99999-0001 10",
        "99999-0001 11)",
        "99999 00 01 11",
        "9999-9000 011",
        "+55 99999-0001 11",
        "+5599999-0001 11",
        "55 99999-0001 11",
        "0055 99999-0001 11",
        "00 15 55 99999-0001 11",
        "0 99999-0001 11",
    ],
)
def test_a_bare_area_code_behind_is_not_guessed(raw: str) -> None:
    assert verdict(raw) == "REJECT:ddd"


@pytest.mark.parametrize(
    "raw",
    [
        "123.456.789-0",
        "119.99999.00-1",
        "119.99999.00.1",
        "119.999.900-01",
        "119 999 900 01",
        "119999900-01",
        "999990001 11",
        "1199999000-1",
        "+55 11 99999-000-1",
    ],
)
def test_documents_are_no_phones(raw: str) -> None:
    assert verdict(raw) == "REJECT:invalid"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("212 555 2368", "552125552368"),
        ("11 9 99 99 00 01", ANA),
        ("11 99 99 00 01", ANA),
        ("91 9 9999 00 01", "5591999990001"),
        ("9199999 00 01", "5591999990001"),
        ("+55 91 99999-00-01", "5591999990001"),
        ("+5591 99999-00-01", "5591999990001"),
        ("0 99 99999 00 01", "5599999990001"),
        ("(11) 333-344-44", SHOP),
        ("(011) 333-344-44", SHOP),
        ("(11 9) 9999-0001", ANA),
        ("11 (9) 9999-0001", ANA),
        ("(11) (99999-0001)", ANA),
        ("((11) 99999-0001)", ANA),
        ("(+55 11) 99999-0001", ANA),
        ("(5511) 99999-0001", ANA),
        ("(+55) (11) 99999-0001", ANA),
        ("+55 (0) 11 99999-0001", ANA),
        ("+55 (011) 99999-0001", ANA),
        ("0 15 (11) 99999-0001", ANA),
        ("(015) (11) 99999-0001", ANA),
        ("(9015) (11) 99999-0001", ANA),
        ("0055 (11) 99999-0001", ANA),
    ],
)
def test_brazilian_groupings_stay(raw: str, expected: str) -> None:
    assert verdict(raw) == expected


@pytest.mark.parametrize("blank", ["0xx", "0XX ", "0**", "0 xx ", "+55 0xx", "+55 (0xx)"])
def test_xx_stands_for_the_carrier(blank: str) -> None:
    assert verdict(f"{blank}11 99999-0001") == ANA
    assert verdict(f"{blank}11 3333-4444 ramal 20") == SHOP
    assert verdict(f"{blank}(11) 99999-0001") == ANA
    assert verdict(f"{blank}99999-0001") == "REJECT:ddd"
    for second in ("21 15 98888-0002", "11 15 99999-0001", "15 11 99999-0001", "(11) 15 3333-4444"):
        assert verdict(f"{blank}{second}") == "REJECT:invalid"


@pytest.mark.parametrize("raw", ["(0xx11) 15 99999-0001", "(0xx 21) 15 98888-0002", "[0**11] 15 99999-0001"])
def test_a_carrier_beside_its_blank(raw: str) -> None:
    assert verdict(raw).startswith("REJECT:")


@pytest.mark.parametrize(
    ("raw", "region", "expected"),
    [
        ("(212) 555-2368", "US", "12125552368"),
        ("+1 (212) 555-2368", "BR", "12125552368"),
        ("00 1 (212) 555-2368", "BR", "12125552368"),
        ("00 49 (551) 1234567", "BR", "495511234567"),
        ("+49 30 12345-0", "BR", "4930123450"),
        ("+55 99999-0001 (11)", "US", ANA),
        ("+55 99999-0001 11", "PT", "REJECT:ddd"),
    ],
)
def test_the_country_decides_whose_grouping_counts(raw: str, region: str, expected: str) -> None:
    assert verdict(raw, region) == expected


@pytest.mark.parametrize(
    "raw", ["(1)" * 6 + "()" * 2000, "(" * 4000 + "11", "99999-0001 " + "(" * 4000, "9" + "- " * 2000]
)
def test_a_hostile_grouping_costs_little(raw: str) -> None:
    begun = time.process_time()
    verdict(raw)
    assert time.process_time() - begun < 0.5
