"""How alike two texts are to a filter that looks for the same thing said to many. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

# Of the last so many texts of a lane, the third that is so alike is a risk (design: rules, "Pacing").
WINDOW = 20
TOO_MANY = 3
ALIKE = 0.8

_WORD = re.compile(r"\w+")


def trigrams(text: str) -> frozenset[tuple[str, ...]]:
    """The text's runs of three words, folded; a shorter text is one run."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = _WORD.findall(folded)
    if len(words) < 3:
        # Two texts of emoji alone have the same words, none, and are not the same.
        return frozenset({tuple(words) or (folded,)})
    return frozenset(zip(words, words[1:], words[2:], strict=False))


def jaccard(one: frozenset[tuple[str, ...]], other: frozenset[tuple[str, ...]]) -> float:
    """What two sets share of all they have: 0 to 1."""
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared)


def repeated(new: Sequence[str], before: Sequence[str]) -> list[int]:
    """Which of the new texts are at least the TOO_MANY-th alike, each seen after the WINDOW texts before it.

    ``before``: the lane's texts, oldest first.
    """
    seen = [trigrams(text) for text in before]
    found: list[int] = []
    for place, text in enumerate(new):
        mine = trigrams(text)
        if sum(jaccard(mine, other) >= ALIKE for other in seen[-WINDOW:]) >= TOO_MANY - 1:
            found.append(place)
        seen.append(mine)
    return found
