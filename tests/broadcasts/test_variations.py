"""The language of a broadcast's text: cases, field reports (B09x, B10x), properties."""

import time
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broadcasts import variations
from broadcasts.variations import Fault, MissingVariable, VariationError

ANA = {"nome": "Ana", "curso": "Python"}


def say(text: str, seed: str = "b1:r1", **values: str) -> str:
    return variations.parse(text).render({**ANA, **values}, seed=seed)


def all_sayings(text: str) -> set[str]:
    template = variations.parse(text)
    return {template.render(ANA, seed=f"r{n}") for n in range(300)}


def fault(text: str, known: set[str] | None = None) -> tuple[Fault, int, int]:
    with pytest.raises(VariationError) as caught:
        variations.parse(text, known=known)
    error = caught.value
    assert f"line {error.line}, column {error.column}: " in str(error)
    return error.code, error.line, error.column


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{nome}}, chegou!", "Ana, chegou!"),  # B097
        ("Oi {{ nome }}!", "Oi Ana!"),
        ("Oi {{apelido|amigo}}!", "Oi amigo!"),
        ("Oi {{nome|amigo}}!", "Oi Ana!"),
        ("Oi {{apelido | meu amigo }}!", "Oi meu amigo!"),
        (r"{{apelido|a\}\|\{b}}", "a}|{b"),
        (r"{{apelido|c:\x}}", r"c:\x"),
        (r"chave \{PIX\}", "chave {PIX}"),
        (r"a \| b | c", "a | b | c"),
        (r"c:\dir \\ \n", r"c:\dir \\ \n"),
        ("fim\\", "fim\\"),
        (r"use \{\"cupom\":\"X10\"\}".replace(r"\"", '"'), 'use {"cupom":"X10"}'),
        (r"https://ex.com/?q=\{a\|b\}&r=1", "https://ex.com/?q={a|b}&r=1"),  # B106
        ("linha 1\nlinha 2", "linha 1\nlinha 2"),
        ("👨‍👩‍👧‍👦 {{nome}}", "👨‍👩‍👧‍👦 Ana"),
        ("{{ação|agir}}", "agir"),
    ],
)
def test_said(text: str, said: str) -> None:
    assert say(text) == said


@pytest.mark.parametrize(
    ("text", "sayings"),
    [
        ("{Oi|Olá} {{nome}}", {"Oi Ana", "Olá Ana"}),
        ("{a|{b|c}}", {"a", "b", "c"}),
        ("{{a|b}|{c|d}}", {"a", "b", "c", "d"}),
        ("{{{nome}}|x}", {"Ana", "x"}),
        ("{x|{{nome}}}", {"x", "Ana"}),
        ("{x|{{apelido|y}}}", {"x", "y"}),
        (r"{\{|\}}", {"{", "}"}),
        (r"{a\|b|c}", {"a|b", "c"}),
        ("{a|b}{a|b}", {"aa", "ab", "ba", "bb"}),
        ("{ a | b }", {" a ", " b "}),
        # B106: a link is as any other text, so that what is seen is what is sent.
        ("https://ex.com/?q={a|b}&r=1", {"https://ex.com/?q=a&r=1", "https://ex.com/?q=b&r=1"}),
    ],
)
def test_a_choice_says_each_of_its_options(text: str, sayings: set[str]) -> None:
    assert all_sayings(text) == sayings


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{Oi|Olá {{nome}}", (Fault.UNBALANCED_BRACE, 1, 1)),  # B098
        ("Oi\nOlá {a|b", (Fault.UNBALANCED_BRACE, 2, 5)),
        ("Oi }", (Fault.UNBALANCED_BRACE, 1, 4)),
        ("{a|b}}", (Fault.UNBALANCED_BRACE, 1, 6)),
        (r"{{nome|a\}}", (Fault.UNBALANCED_BRACE, 1, 1)),
        ("{{nome}", (Fault.BAD_PLACEHOLDER, 1, 1)),
        ("Oi {{nome} e", (Fault.BAD_PLACEHOLDER, 1, 4)),
        (r"\{{nome}}", (Fault.LONE_BRACES, 1, 3)),
        ("{a}", (Fault.LONE_BRACES, 1, 1)),
        ("{}", (Fault.LONE_BRACES, 1, 1)),
        ("{{{nome}}}", (Fault.LONE_BRACES, 1, 1)),
        ("{a|{b}}", (Fault.LONE_BRACES, 1, 4)),
        ("a\n\n {'a': 1}", (Fault.JSON_LIKE, 3, 2)),
        ('{ "a" : "b|c"}', (Fault.JSON_LIKE, 1, 1)),
        ("{{}}", (Fault.BAD_PLACEHOLDER, 1, 1)),
        ("Oi {{1}}", (Fault.BAD_PLACEHOLDER, 1, 4)),
        ("{{nome completo}}", (Fault.BAD_PLACEHOLDER, 1, 1)),
        ("Oi {{nome|a|b}}", (Fault.BAD_PLACEHOLDER, 1, 4)),
        ("{{nome|{a|b}}}", (Fault.BAD_PLACEHOLDER, 1, 1)),
        ("{{a|b} x}", (Fault.LONE_BRACES, 1, 1)),
        ("{{nome|}}", (Fault.EMPTY_OPTION, 1, 8)),
        ("{{nome| }}", (Fault.EMPTY_OPTION, 1, 8)),
        ("{a|}", (Fault.EMPTY_OPTION, 1, 4)),
        ("{|a}", (Fault.EMPTY_OPTION, 1, 2)),
        ("{a||b}", (Fault.EMPTY_OPTION, 1, 4)),
        ("{a| \u200b }", (Fault.EMPTY_OPTION, 1, 4)),
        ("", (Fault.BLANK, 1, 1)),
        ("\n" * 5000, (Fault.BLANK, 1, 1)),  # B205
        ("\u200b\u3164\ufe0f\u2800", (Fault.BLANK, 1, 1)),
        ("a\n\x00", (Fault.FORBIDDEN_CHARACTER, 2, 1)),
        ("ab\ud800", (Fault.FORBIDDEN_CHARACTER, 1, 3)),
        ("a" * (variations.MAX_SOURCE + 1), (Fault.TOO_LONG, 1, variations.MAX_SOURCE + 1)),
        ("{" * 5000 + "a" + "}" * 5000, (Fault.TOO_DEEP, 1, variations.MAX_DEPTH + 1)),  # B104
    ],
    ids=lambda value: repr(value)[:30] if isinstance(value, str) else None,
)
def test_refused_with_its_place(text: str, expected: tuple[Fault, int, int]) -> None:
    assert fault(text) == expected


def test_braces_without_a_choice_are_errors_not_text() -> None:
    """B100 would keep `{PIX}` and JSON as they are; the rules of the product say
    that lone braces and JSON-like text are errors, and the rules win."""
    assert fault("chave {PIX}") == (Fault.LONE_BRACES, 1, 7)
    assert fault('use {"cupom":"X10"} no caixa') == (Fault.JSON_LIKE, 1, 5)


def test_an_empty_option_is_an_error_even_among_others() -> None:
    """B101 would let `{, amigo|}` pass; the rules of the product say that empty
    options are errors, and the rules win."""
    assert fault("Oi{, amigo|}!") == (Fault.EMPTY_OPTION, 1, 12)
    assert fault("{|}") == (Fault.EMPTY_OPTION, 1, 2)


def test_an_unknown_variable_is_named() -> None:
    known = {"nome"}
    assert variations.parse("{{nome}}", known=known).placeholders == ("nome",)
    assert fault("Oi {{Nome}}", known) == (Fault.UNKNOWN_PLACEHOLDER, 1, 4)
    with pytest.raises(VariationError, match="cidade"):
        variations.parse("{a|{{cidade|São Paulo}}}", known=known)


def test_the_deepest_nesting_that_is_allowed() -> None:
    depth = variations.MAX_DEPTH
    assert all_sayings("{" + "a|{" * (depth - 1) + "a|b" + "}" * depth) <= {"a", "b"}
    assert fault("{a|" * (depth + 1) + "b" + "}" * (depth + 1))[0] is Fault.TOO_DEEP


def test_variables_are_listed_in_order_of_appearance() -> None:
    template = variations.parse("{{b}} {{a|x}} {c|{{c}}} {{b|y}}")
    assert template.placeholders == ("b", "a", "c")
    assert template.required == {"b", "c"}


@pytest.mark.parametrize("value", [None, "", "   ", "\u200b", "\n", "\x00"])
def test_a_missing_or_blank_value(value: str | None) -> None:  # B214
    values = {} if value is None else {"nome": value}
    with pytest.raises(MissingVariable) as caught:
        variations.parse("Oi {{nome}}").render(values, seed="s")
    assert caught.value.name == "nome"
    assert variations.parse("Oi {{nome|amigo}}").render(values, seed="s") == "Oi amigo"


def test_a_variable_counts_only_in_the_words_that_are_said() -> None:
    template = variations.parse("{Olá|Oi {{apelido}}}")
    seen = set()
    for n in range(50):
        try:
            seen.add(template.render({}, seed=str(n)))
        except MissingVariable:
            seen.add("missing")
    assert seen == {"Olá", "missing"}


@pytest.mark.parametrize("value", ["{a|b}", "{{curso}}", "}", r"\{", "|", "{" * 5000])
def test_a_value_is_never_parsed(value: str) -> None:
    assert say("{{nome}}", nome=value) == value
    assert say("{{{nome}}|{{nome}}}", nome=value) == value


def test_a_value_sheds_what_no_message_can_carry() -> None:
    assert say("Oi {{nome}}", nome="A\x00n\ud800a") == "Oi Ana"


def test_a_retry_says_the_same_words() -> None:
    """B103. Written out, so that no release changes the words of a running broadcast."""
    text = "{Oi|Olá|Bom dia} {{nome}}, {saiu|chegou|abriu} {a|b}{a|b}{a|b}{a|b}"
    assert say(text, "brd_1:rcp_1") == say(text, "brd_1:rcp_1")
    assert say(text, "brd_1:rcp_1") == "Olá Ana, saiu bbbb"
    assert len({say(text, f"brd_1:rcp_{n}") for n in range(100)}) > 50


def test_choices_of_one_text_are_independent() -> None:
    said = Counter(say("{a|b}{c|d}", f"r{n}") for n in range(4000))
    assert set(said) == {"ac", "ad", "bc", "bd"}
    assert all(850 < count < 1150 for count in said.values())


def test_variations_are_picked_evenly_and_again_the_same() -> None:
    """B107: one variation per recipient, chosen once."""
    picked = Counter(variations.pick(5, f"b:{n}") for n in range(10_000))
    assert set(picked) == set(range(5))
    assert all(1850 < count < 2150 for count in picked.values())
    assert variations.pick(5, "b:1") == variations.pick(5, "b:1")
    assert variations.pick(1, "b:1") == 0
    with pytest.raises(ValueError, match="nothing"):
        variations.pick(0, "b:1")


def test_the_pick_does_not_decide_the_words() -> None:
    """The variation and the first choice in it come from one seed, yet are independent."""
    pairs = {(variations.pick(2, f"r{n}"), say("{a|b}", f"r{n}")) for n in range(100)}
    assert len(pairs) == 4


@pytest.mark.parametrize(
    ("texts", "count"),
    [
        (["Oi {{nome}}!", "oi, {{nome}}", "OI  {{ nome }}…", "«Oi» {{nome}}?"], 1),
        (["Oi", "O\u200bi", "O\u00adi", "Oi\ufe0f", "Oi\u3164"], 1),
        (["Ol\u00e1", "Ola\u0301", "OLÁ"], 1),
        (["ＯＩ", "oi"], 1),
        (["Olá", "Ola"], 2),
        (["Oi 😀", "Oi 🎉", "Oi"], 3),
        (["{{nome}}", "nome", "{{curso}}"], 3),
        (["{a|b}", "{b|a}", "{ A! | b}"], 1),
        (["{a|b}", "a b", "{a|c}"], 3),
        (["{a|A!}", "a"], 1),
        (["{{nome|x}}", "{{nome|y}}", "{{nome}}"], 1),
        ([r"\{a\|b\}", "ab"], 1),
        ([], 0),
    ],
)
def test_distinct(texts: list[str], count: int) -> None:
    assert variations.distinct(texts) == count
    assert variations.distinct(map(variations.parse, texts)) == count


def test_five_variations_that_only_look_different_are_not_five() -> None:
    texts = ["Promo hoje", "promo hoje!", "PROMO HOJE", "Promo,  hoje.", "*Promo* hoje"]
    assert variations.distinct(texts) < variations.MIN_VARIATIONS


@pytest.mark.parametrize(
    ("text", "length"),
    [("a" * 4096, 4096), ("é", 1), ("e\u0301", 2), ("😀", 1), ("👨‍👩‍👧‍👦", 7), ("🇧🇷", 2), ("", 0)],
)
def test_length_is_in_characters(text: str, length: int) -> None:  # B199, B200
    assert variations.text_length(text) == length


# --- properties -----------------------------------------------------------

PLAIN = st.text(st.characters(exclude_characters="\x00\\{}|", exclude_categories=["Cs"]))
VISIBLE = PLAIN.filter(lambda text: not variations.is_blank(text))
PIECES = st.lists(st.sampled_from(["{", "}", "|", "\\", "{{", "}}", "{{nome", "nome", '"a":', " ", "\n", "x"]))


@settings(max_examples=500)
@given(text=st.text(st.characters(exclude_categories=())) | PIECES.map("".join))
def test_any_text_is_said_or_refused_with_its_place(text: str) -> None:
    try:
        template = variations.parse(text)
    except VariationError as error:
        place = (error.line, error.column)
    else:
        values = dict.fromkeys(template.placeholders, "v")
        said = template.render(values, seed=text)
        assert not variations.is_blank(said)
        assert said == template.render(values, seed=text)
        return
    lines = text.split("\n")
    assert 1 <= place[0] <= len(lines)
    assert 1 <= place[1] <= len(lines[place[0] - 1]) + 1


@given(text=st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])))
def test_an_escaped_text_says_itself(text: str) -> None:
    escaped = "x"
    for char in text.replace("\\", "/"):
        escaped += f"\\{char}" if char in "{}|" else char
    assert say(escaped) == "x" + text.replace("\\", "/")


@given(options=st.lists(VISIBLE, min_size=2, max_size=6), seed=st.text())
def test_a_choice_says_one_of_its_options(options: list[str], seed: str) -> None:
    template = variations.parse("{" + "|".join(options) + "}")
    assert template.render({}, seed=seed) in options


@given(value=st.text(), seed=st.text(st.characters(exclude_categories=())))
def test_any_value_and_seed_are_taken(value: str, seed: str) -> None:
    said = variations.parse("Oi {{nome|amigo}} {a|b}").render({"nome": value}, seed=seed)
    assert said.startswith("Oi ")


@pytest.mark.parametrize(
    "text",
    [
        "{a|b}" * 300,  # B104: 2**300 combinations are never counted
        "{a|b}" * 3200,
        "{{nome|x}}" * 1600,
        "{" * 16_000,
        "{{" * 8000,
        "{{nome|" * 2000,
        "{{nome" + " " * 16_000,
        '{"' * 8000,
        "\\" * 16_000,
        "{{nome|" + "\\{" * 8000,
        "a" + "\u0315\u0300" * 8000,
        "x" * 5_000_000,
    ],
    ids=lambda text: f"{text[:8]}-{len(text)}",
)
def test_a_hostile_text_costs_little(text: str) -> None:
    begun = time.process_time()
    try:
        variations.parse(text).render(ANA, seed="s")
        variations.distinct([text])
    except VariationError:
        pass
    assert time.process_time() - begun < 0.5


def test_json_with_a_bar_in_its_key_is_json_all_the_same() -> None:
    with pytest.raises(VariationError) as refused:
        variations.parse('veja {"a|b": 1}')
    assert refused.value.code == Fault.JSON_LIKE
