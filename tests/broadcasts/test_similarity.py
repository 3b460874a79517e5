"""How alike two texts are."""

from __future__ import annotations

import pytest

from broadcasts import similarity


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("a b c d", "a b c d", 1.0),
        ("A, b! C d", "a b c d", 1.0),
        ("a b c d", "a b c e", 1 / 3),
        ("a b c d e", "a b c d e f", 3 / 4),
        ("a b", "a b", 1.0),
        ("a b", "a b c", 0.0),
        ("", "", 1.0),
        ("😀", "😀", 1.0),
        ("😀", "🎉", 0.0),
        ("a b c", "d e f", 0.0),
    ],
)
def test_jaccard_over_runs_of_three_words(one: str, other: str, expected: float) -> None:
    assert similarity.jaccard(similarity.trigrams(one), similarity.trigrams(other)) == pytest.approx(expected)


def test_the_third_of_a_kind_and_each_after_it() -> None:
    assert similarity.repeated(["a b c d"], ["a b c d"]) == []
    assert similarity.repeated(["a b c d"], ["a b c d", "x y z", "a b c d"]) == [0]
    assert similarity.repeated(["a b c d", "q", "a b c d", "a b c d", "a b c d"], []) == [3, 4]


def test_texts_further_back_than_the_window_are_forgotten() -> None:
    others = [f"texto número {number} de outro dia" for number in range(19)]

    assert similarity.repeated(["a b c d"], ["a b c d", *others[:18], "a b c d"]) == [0]
    assert similarity.repeated(["a b c d"], ["a b c d", *others, "a b c d"]) == []
