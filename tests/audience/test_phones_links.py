"""Links and lists: one number is read, a second one is never dropped in silence."""

import time

import pytest

from audience import phones

ANA = "5511999990001"
BIA = "5511988880002"
SHOP = "551133334444"
SEND = "https://api.whatsapp.com/send"


def verdict(raw: str) -> str:
    return phones.explain(raw, region="BR").verdict


@pytest.mark.parametrize(
    "raw",
    [
        f"{SEND}?phone={ANA}&phone={BIA}",
        f"{SEND}?phone={ANA}&text=oi&PHONE={BIA}",
        f"{SEND}?phone={ANA}&amp;phone={BIA}",
        f"{SEND}?phone={ANA};phone={BIA}",
        f"{SEND}?phone={ANA}?phone={BIA}",
        f"https://api.whatsapp.com/{ANA}?phone=%2B{BIA}",
        f"{SEND}?phone={ANA},{BIA}",
        f"whatsapp://send?phone={ANA}&phone={BIA}",
        f"https://wa.me/{ANA}?phone={BIA}",
        f"https://wa.me/%2B{ANA}/?text=oi&phone=+{BIA}",
        f"https://wa.me/{ANA}/{BIA}",
        f"tel:+{ANA}?phone={BIA}",
        f"sms:+{ANA},+{BIA}",
        f"https://wa.me/{ANA} https://wa.me/{BIA}",
        f"https://wa.me/{ANA}\nhttps://wa.me/{BIA}",
        f"https://wa.me/{ANA}, wa.me/{BIA}",
        f"wa.me/{ANA} / wa.me/{BIA}",
        f"wa.me/{ANA}?text=oi https://wa.me/{BIA}",
        f"(wa.me/{ANA}) (wa.me/{BIA})",
        f"{SEND}?phone={ANA} e {SEND}?phone={BIA}",
        f"tel:+{ANA} tel:+{BIA}",
        f"tel:+{ANA};tel:+{BIA}",
        f"tel:+{ANA}, tel:+{BIA}",
        "Tel: (11) 3333-4444 WhatsApp: 11 99999-0001",
        f"tel:+{ANA} https://wa.me/{BIA}",
        f"https://wa.me/{ANA} 11 98888-0002",
        f"{ANA} tel:+{BIA}",
        f"11 99999-0001 https://wa.me/{BIA}",
    ],
)
def test_two_numbers_in_links(raw: str) -> None:
    assert verdict(raw) == "REJECT:multiple"


@pytest.mark.parametrize(
    "raw",
    [
        f"{SEND}?phone={ANA}&phone=%2B{ANA}",
        f"{SEND}?phone=&phone={ANA}",
        f"{SEND}?text=a&amp;phone={ANA}",
        f"{SEND}?phone={ANA}&text=https://wa.me/{BIA}",
        f"{SEND}?phone={ANA}&text=veja+wa.me/{BIA}+ou+tel:{BIA}",
        f"{SEND}?phone={ANA}&text=phone%3D{BIA}",
        f"https://wa.me/{ANA}?phone={ANA}",
        f"https://wa.me/{ANA}?phone=",
        f"https://wa.me/{ANA}?text=tel:%20190",
        f"https://wa.me/send?phone={ANA}",
        f"https://wa.me/message/AB12345678?phone={ANA}",
        f"tel:+{ANA};ext=20?body=1",
        f"sms:+{ANA}?body=ligue%20{BIA}",
    ],
)
def test_a_link_with_one_number(raw: str) -> None:
    assert verdict(raw) == ANA


@pytest.mark.parametrize("mark", [",", "."])
@pytest.mark.parametrize(
    "numbers",
    [
        (ANA, BIA),
        (f"+{ANA}", BIA),
        ("11999990001", "11988880002"),
        ("11999990001", "011988880002"),
        ("11999990001", "988880002"),
        ("1133334444", "33335555"),
        (ANA, BIA, "5511977770003"),
    ],
)
def test_two_numbers_are_no_decimal(numbers: tuple[str, ...], mark: str) -> None:
    assert verdict(mark.join(numbers)) == "REJECT:multiple"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (f"{ANA}.0", ANA),
        (f"{ANA},00000000", ANA),
        (f"{ANA}.5", "REJECT:invalid"),
        (f"{ANA}.0000001", "REJECT:invalid"),
        ("00 15 55 11 99999-0001", ANA),
        ("00 21 55 11 99999-0001", ANA),
        ("00 21 55 (11) 99999-0001", ANA),
        ("0021 55 11 3333-4444", SHOP),
        ("00 21 55 99999-0001 (11)", ANA),
        ("00 15 55 11 99999-0001 11 98888-0002", "REJECT:multiple"),
    ],
)
def test_one_number_is_not_called_two(raw: str, expected: str) -> None:
    assert verdict(raw) == expected


@pytest.mark.parametrize(
    "number", ["(11) 3333-4444", "1133334444", "+55 11 3333-4444", "11 (3333-4444)", "[11] 3333-4444"]
)
@pytest.mark.parametrize(
    "extension",
    [
        "/ramal 20",
        " / ramal 20",
        " [ramal 20]",
        "[ramal: 20]",
        " (ramal 20)",
        " - ramal 20",
        ", ramal 20",
        " r20",
        " R 20",
        " r.20",
        " (r20)",
        "/r20",
        " ram. 20",
        " ext. 20",
        " x20",
        " #20",
    ],
)
def test_an_extension_is_dropped(number: str, extension: str) -> None:
    assert verdict(f"{number}{extension}") == SHOP


@pytest.mark.parametrize("raw", [f"{SEND}?phone=", "https://wa.me/?phone=", "wa.me/message/AB12345678", f"hotel:{ANA}"])
def test_a_link_without_a_number(raw: str) -> None:
    assert verdict(raw) == "REJECT:chars"


@pytest.mark.parametrize(
    "raw",
    ["wa.me/?" + "&phone=1" * 500, "tel: " * 800, "wa.me/ " * 580, "https://" * 500, "tel:1?phone" + "?phone" * 600],
)
def test_a_hostile_link_costs_little(raw: str) -> None:
    begun = time.process_time()
    assert verdict(raw).startswith("REJECT:")
    assert time.process_time() - begun < 0.5
