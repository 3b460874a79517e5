"""What a broadcast says: its variations understood once, and the words for each person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from uuid import UUID

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from broadcasts import variations
from broadcasts.refusals import Refused
from broadcasts.variations import Choice, Fault, Placeholder, Template, VariationError

# The one personal value that is no attribute: the contact's name, or the one on the group's line.
NAME = "nome"
# Far above what anybody writes: a dispatcher that all tenants share reads them again after a restart.
MAX_VARIATIONS = 50
MAX_SOURCE_IN_ALL = 65_536


# What the author is told; the pure module speaks English, to programs.
_FAULTS: dict[Fault, Promise] = {
    Fault.BLANK: gettext_lazy("nothing of this text can be seen"),
    Fault.TOO_LONG: gettext_lazy("the text is too long"),
    Fault.TOO_DEEP: gettext_lazy("too many braces stand in one another"),
    Fault.FORBIDDEN_CHARACTER: gettext_lazy("this character can't be sent"),
    Fault.UNBALANCED_BRACE: gettext_lazy("this brace has no partner; a brace that is meant is written \\{ or \\}"),
    Fault.LONE_BRACES: gettext_lazy("these braces hold no choice; braces that are meant are written \\{ and \\}"),
    Fault.JSON_LIKE: gettext_lazy("this looks like JSON; braces that are meant are written \\{ and \\}"),
    Fault.EMPTY_OPTION: gettext_lazy("an option or a fallback is empty"),
    Fault.BAD_PLACEHOLDER: gettext_lazy("this is no variable: {{name}} or {{name|fallback}}"),
    Fault.UNKNOWN_PLACEHOLDER: gettext_lazy("there is no variable of this name"),
}


@dataclass(frozen=True)
class Content:
    """Variations and the values that are the same for all. A value that is blank counts as not given."""

    templates: tuple[Template, ...]
    variables: Mapping[str, str]

    def text_for(self, *, broadcast_id: UUID, recipient_id: UUID, person: Mapping[str, str]) -> str:
        """The words for one person, the same each time. Raises variations.MissingVariable."""
        seed = f"{broadcast_id}:{recipient_id}"
        template = self.templates[variations.pick(len(self.templates), seed)]
        return template.render({**person, **self.variables}, seed=seed)

    @cached_property
    def personal(self) -> list[str]:
        """The names whose values come from the person, in order of appearance."""
        names = (name for template in self.templates for name in template.placeholders)
        return [name for name in dict.fromkeys(names) if name not in self.variables]

    @cached_property
    def required(self) -> list[str]:
        """Those of the personal names that stand somewhere without a fallback."""
        return [name for name in self.personal if any(name in template.required for template in self.templates)]

    @cached_property
    def bound(self) -> Bound:
        """No text is longer than this for any person."""
        return _either(_bound(template.sequence, self.variables) for template in self.templates)


@dataclass(frozen=True, slots=True)
class Bound:
    """A text's length at most: ``fixed`` and, for each personal name, so many times its value's length."""

    fixed: int = 0
    uses: Mapping[str, int] | None = None


def stored(texts: Sequence[str], variables: Mapping[str, str]) -> Content:
    """The content of a broadcast that was accepted before; understood once, for it never changes."""
    return _stored(tuple(texts), tuple(variables.items()))


@lru_cache(maxsize=64)
def _stored(texts: tuple[str, ...], variables: tuple[tuple[str, str], ...]) -> Content:
    return Content(tuple(variations.parse(text) for text in texts), _given(dict(variables)))


def require_bounded(texts: Sequence[str]) -> None:
    """Refuse what would cost more to understand than any broadcast needs, before any of it is parsed."""
    if len(texts) > MAX_VARIATIONS:
        detail = _("At most %(most)d variations are possible.") % {"most": MAX_VARIATIONS}
        raise Refused("invalid_variation", detail, "variations")
    if sum(map(len, texts)) > MAX_SOURCE_IN_ALL:
        detail = _("The variations have more than %(most)d characters together.") % {"most": MAX_SOURCE_IN_ALL}
        raise Refused("invalid_variation", detail, "variations")


def read(texts: Sequence[str], variables: Mapping[str, str], *, attributes: Collection[str]) -> Content:
    """Understand new content; ``attributes`` are names that persons have values for.

    Raises Refused: ``min_5_variations_required``, ``invalid_variation``, ``variations_too_similar``.
    """
    fewest = variations.MIN_VARIATIONS
    if len(texts) < fewest:
        detail = _("At least %(fewest)d variations are needed.") % {"fewest": fewest}
        raise Refused("min_5_variations_required", detail, "variations")
    known = {NAME, *variables, *attributes}
    templates = tuple(_template(place, text, known) for place, text in enumerate(texts))
    if variations.distinct(templates) < fewest:
        detail = _("At least %(fewest)d variations must differ in more than case, blanks and punctuation.")
        raise Refused("variations_too_similar", detail % {"fewest": fewest}, "variations")
    return Content(templates, _given(variables))


def names_in(texts: Iterable[str]) -> list[str]:
    """The variables that the texts name; a text that can't be understood has none yet."""
    names: dict[str, None] = {}
    for text in texts:
        try:
            names |= dict.fromkeys(variations.parse(text).placeholders)
        except VariationError:
            continue
    return list(names)


def _template(place: int, text: str, known: Collection[str]) -> Template:
    try:
        return variations.parse(text, known=known)
    except VariationError as error:
        detail = _("Variation %(number)d, line %(line)d, column %(column)d: %(message)s") % {
            "number": place + 1,
            "line": error.line,
            "column": error.column,
            "message": _FAULTS[error.code],
        }
        raise Refused("invalid_variation", detail, f"variations.{place}") from error


def _given(variables: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in variables.items() if not variations.is_blank(value)}


def _bound(sequence: variations.Sequence, variables: Mapping[str, str]) -> Bound:
    fixed, uses = 0, Counter[str]()
    for node in sequence:
        if isinstance(node, str):
            fixed += variations.text_length(node)
        elif isinstance(node, Placeholder):
            # Value or fallback: both are counted, since a bound may be generous.
            fixed += variations.text_length(variables.get(node.name, "") or node.fallback or "")
            uses[node.name] += node.name not in variables
        elif isinstance(node, Choice):
            longest = _either(_bound(option, variables) for option in node.options)
            fixed += longest.fixed
            uses.update(longest.uses or {})
    return Bound(fixed, +uses)


def _either(bounds: Iterable[Bound]) -> Bound:
    """What bounds each of them."""
    fixed, uses = 0, Counter[str]()
    for bound in bounds:
        fixed = max(fixed, bound.fixed)
        uses |= Counter(bound.uses or {})
    return Bound(fixed, uses)
