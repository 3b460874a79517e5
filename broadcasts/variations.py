r"""The little language of a broadcast's text.

    {{name}}  {{name|fallback}}    a value of the person, put in last, never parsed; blanks around both are not said
    {a|b|c}                        one of them; may nest
    \{  \}  \|                     the plain character; any other backslash is itself

A `|` outside braces is plain text. Whatever else has braces is an error that
names its line and column, so that a text which was accepted can't break, or
change silently, at the moment of sending: a link with braces is a choice too
(`?q={a|b}`), unless it is written `?q=\{a\|b\}`.

Pure, and linear in the length of the text.
"""

import hashlib
import itertools
import re
import string
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

MIN_VARIATIONS = 5
MAX_TEXT = 4096  # of a rendered text, by text_length
MAX_SOURCE = 4 * MAX_TEXT
MAX_DEPTH = 10


class Fault(StrEnum):
    """Stable words for what is wrong with a text."""

    BLANK = "blank"
    TOO_LONG = "too_long"
    TOO_DEEP = "too_deep"
    FORBIDDEN_CHARACTER = "forbidden_character"
    UNBALANCED_BRACE = "unbalanced_brace"
    LONE_BRACES = "lone_braces"
    JSON_LIKE = "json_like"
    EMPTY_OPTION = "empty_option"
    BAD_PLACEHOLDER = "bad_placeholder"
    UNKNOWN_PLACEHOLDER = "unknown_placeholder"


class VariationError(ValueError):
    """The text is not of the language. `line` and `column` count from 1, in characters."""

    def __init__(self, code: Fault, message: str, line: int, column: int) -> None:
        super().__init__(f"line {line}, column {column}: {message}")
        self.code = code
        self.message = message
        self.line = line
        self.column = column


class MissingVariable(LookupError):
    """This person has no value, or a blank one, where the text gives no fallback."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no value for {name}")
        self.name = name


@dataclass(frozen=True, slots=True)
class Placeholder:
    name: str
    fallback: str | None


@dataclass(frozen=True, slots=True)
class Choice:
    """One of its options; `number` tells the choices of a text apart, in reading order."""

    number: int
    options: tuple["Sequence", ...]


Node: TypeAlias = "str | Placeholder | Choice"
Sequence: TypeAlias = tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Template:
    """A text that was understood.

    `placeholders`: every variable it names, in order of appearance; `required`:
    those that stand somewhere without a fallback.
    """

    source: str
    sequence: Sequence
    placeholders: tuple[str, ...]
    required: frozenset[str]

    def render(self, values: Mapping[str, str], *, seed: str) -> str:
        """The words for one person.

        The same seed (broadcast and recipient) always says the same words. Raises
        MissingVariable for a variable in the chosen words alone. The length is not
        checked here: see text_length.
        """
        words: list[str] = []
        _render(self.sequence, values, seed, words)
        return "".join(words)

    @property
    def fingerprint(self) -> str:
        """Equal for texts that say the same: see distinct."""
        return _fingerprint(self.sequence)


def parse(text: str, *, known: Collection[str] | None = None) -> Template:
    """Understand one variation; raises VariationError.

    `known`: the variables that exist; any other is an error. None accepts all.
    """
    _check_characters(text)
    return _Parser(text, known).parse()


def pick(count: int, seed: str) -> int:
    """Which of `count` variations a recipient gets: even over seeds, the same each time."""
    if count < 1:
        raise ValueError("nothing to pick from")
    return _number(f"variation\x1f{seed}") % count


def distinct(texts: Iterable[str | Template]) -> int:
    """How many differ after folding case, blanks and punctuation.

    Invisible characters fold away as blanks do; accents, emoji and the names of
    variables count. The order of a choice's options does not. Raises
    VariationError for a text that does not parse.
    """
    templates = (parse(text) if isinstance(text, str) else text for text in texts)
    return len({template.fingerprint for template in templates})


def text_length(text: str) -> int:
    """Length in characters (Unicode code points), as WhatsApp's limit and PostgreSQL's char_length count."""
    return len(text)


def is_blank(text: str) -> bool:
    """Whether nothing of the text can be seen."""
    return all(_is_invisible(char) for char in text)


# Letters and marks by category that nevertheless show nothing.
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_VARIATION_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_FORBIDDEN = re.compile("[\x00\ud800-\udfff]")


def _is_invisible(char: str) -> bool:
    if char.isspace() or char in _INVISIBLE:
        return True
    if char.isascii():
        return not char.isprintable()
    return unicodedata.category(char)[0] in "CZ" or bool(_VARIATION_SELECTORS.match(char))


def _check_characters(text: str) -> None:
    if len(text) > MAX_SOURCE:
        raise _error(Fault.TOO_LONG, f"longer than {MAX_SOURCE} characters", text, MAX_SOURCE)
    if forbidden := _FORBIDDEN.search(text):
        message = "a NUL or half a character (lone surrogate)"
        raise _error(Fault.FORBIDDEN_CHARACTER, message, text, forbidden.start())


def _error(code: Fault, message: str, text: str, at: int) -> VariationError:
    line_start = text.rfind("\n", 0, at) + 1
    return VariationError(code, message, text.count("\n", 0, at) + 1, at - line_start + 1)


# --- reading --------------------------------------------------------------

_TOKEN = re.compile(r"\\[{}|]|[{}|]|[^\\{}|]+|\\")
# Possessive, so that a fallback never gives its escaped brace back to the end.
_PLACEHOLDER = re.compile(r"\{\{\s*+([^\W\d]\w{0,63})\s*+(?:\|((?:\\[{}|]|[^{}|\\]|\\(?![{}|]))*+))?\}\}")
_JSON = re.compile(r"""\{\s*+(?:"[^"{}]*+"|'[^'{}]*+')\s*+:""")
_ESCAPED = re.compile(r"\\([{}|])")


@dataclass(slots=True)
class _Open:
    """A brace not yet closed, or (at -1) the whole text; `at` is its place."""

    at: int
    number: int = 0
    option_at: int = 0
    options: list[Sequence] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)


class _Parser:
    """One pass over the text with a stack of open braces; no recursion."""

    def __init__(self, text: str, known: Collection[str] | None) -> None:
        self.text = text
        self.known = known
        self.stack = [_Open(at=-1)]
        self.choices = 0
        self.names: dict[str, None] = {}
        self.required: set[str] = set()

    def parse(self) -> Template:
        at = 0
        while at < len(self.text):
            at = self._step(at)
        if len(self.stack) > 1:
            raise self._fault(Fault.UNBALANCED_BRACE, "this { is never closed", self.stack[-1].at)
        sequence = _joined(self.stack[0].nodes)
        if _is_empty(sequence):
            raise self._fault(Fault.BLANK, "nothing of this text can be seen", 0)
        return Template(self.text, sequence, tuple(self.names), frozenset(self.required))

    def _step(self, at: int) -> int:
        """Take the piece that begins here; the place after it."""
        if found := _PLACEHOLDER.match(self.text, at):
            self._placeholder(found)
            return found.end()
        token = _TOKEN.match(self.text, at)
        assert token is not None  # every character begins a token
        piece = token.group()
        if piece == "{":
            self._open(at)
        elif piece == "}":
            self._close(at)
        elif piece == "|" and len(self.stack) > 1:
            self._end_option(at)
        else:
            plain = piece[1:] if len(piece) == 2 and piece[0] == "\\" else piece
            self.stack[-1].nodes.append(plain)
        return token.end()

    def _placeholder(self, found: re.Match[str]) -> None:
        name, fallback = found.group(1), found.group(2)
        if self.known is not None and name not in self.known:
            raise self._fault(Fault.UNKNOWN_PLACEHOLDER, f"no variable {name}", found.start())
        if fallback is None:
            self.required.add(name)
        else:
            fallback = _ESCAPED.sub(r"\1", fallback.strip())
            if is_blank(fallback):
                raise self._fault(Fault.EMPTY_OPTION, "the fallback is empty", found.start(2))
        self.names.setdefault(name)
        self.stack[-1].nodes.append(Placeholder(name, fallback))

    def _open(self, at: int) -> None:
        if _JSON.match(self.text, at):
            raise self._fault(Fault.JSON_LIKE, "looks like JSON; write \\{ and \\}", at)
        if len(self.stack) > MAX_DEPTH:
            raise self._fault(Fault.TOO_DEEP, f"more than {MAX_DEPTH} braces in one another", at)
        self.stack.append(_Open(at, number=self.choices, option_at=at + 1))
        self.choices += 1

    def _close(self, at: int) -> None:
        if len(self.stack) == 1:
            raise self._fault(Fault.UNBALANCED_BRACE, "this } closes nothing; write \\}", at)
        opened = self.stack[-1]
        if not opened.options:
            raise self._lone(opened, at)
        self._end_option(at)
        self.stack.pop()
        self.stack[-1].nodes.append(Choice(opened.number, tuple(opened.options)))

    def _end_option(self, at: int) -> None:
        group = self.stack[-1]
        option = _joined(group.nodes)
        if _is_empty(option):
            raise self._fault(Fault.EMPTY_OPTION, "an option is empty", group.option_at)
        group.options.append(option)
        group.nodes = []
        group.option_at = at + 1

    def _lone(self, opened: _Open, at: int) -> VariationError:
        """Braces without a `|`: plain text, or a placeholder gone wrong (`{{a}`, `{{a|b|c}}`)."""
        outer = self.stack[-2].at
        message = "a placeholder is {{name}} or {{name|fallback}}: letters, digits, _"
        if 0 <= outer == opened.at - 1:
            return self._fault(Fault.BAD_PLACEHOLDER, message, outer)
        holds_a_choice = len(opened.nodes) == 1 and isinstance(opened.nodes[0], Choice)
        if holds_a_choice and self.text[opened.at + 1] == "{" and self.text[at - 1] == "}":
            return self._fault(Fault.BAD_PLACEHOLDER, message, opened.at)
        return self._fault(Fault.LONE_BRACES, "braces without a choice; write \\{ and \\}", opened.at)

    def _fault(self, code: Fault, message: str, at: int) -> VariationError:
        return _error(code, message, self.text, at)


def _joined(nodes: list[Node]) -> Sequence:
    """The nodes with neighbouring plain texts made one."""
    sequence: list[Node] = []
    for is_text, run in itertools.groupby(nodes, key=lambda node: isinstance(node, str)):
        same_kind = list(run)
        sequence.extend(["".join(map(str, same_kind))] if is_text else same_kind)
    return tuple(sequence)


def _is_empty(sequence: Sequence) -> bool:
    # An option, and so a choice, is never empty; a placeholder never renders blank.
    return all(isinstance(node, str) and is_blank(node) for node in sequence)


# --- saying (depth is bounded by MAX_DEPTH, so recursion is too) ------------


def _render(sequence: Sequence, values: Mapping[str, str], seed: str, words: list[str]) -> None:
    for node in sequence:
        if isinstance(node, str):
            words.append(node)
        elif isinstance(node, Placeholder):
            words.append(_value(node, values))
        else:
            option = _number(f"choice\x1f{node.number}\x1f{seed}") % len(node.options)
            _render(node.options[option], values, seed, words)


def _value(placeholder: Placeholder, values: Mapping[str, str]) -> str:
    # What PostgreSQL and UTF-8 can't hold is left out, as in every stored text.
    value = _FORBIDDEN.sub("", values.get(placeholder.name, ""))
    if not is_blank(value):
        return value
    if placeholder.fallback is None:
        raise MissingVariable(placeholder.name)
    return placeholder.fallback


def _number(text: str) -> int:
    """64 even bits of a text; hashlib, since hash() and random differ between processes."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def _fingerprint(sequence: Sequence) -> str:
    pieces = []
    for node in sequence:
        if isinstance(node, str):
            pieces.append(_folded(node))
        elif isinstance(node, Placeholder):
            pieces.append(f"{{{node.name}}}")
        else:
            options = sorted({_fingerprint(option) for option in node.options})
            pieces.append(options[0] if len(options) == 1 else f"<{'|'.join(options)}>")
    return "".join(pieces)


_ASCII_PUNCTUATION = frozenset(string.punctuation)


def _folded(text: str) -> str:
    # No brace, bracket or bar is left, so a fingerprint's own can't be forged.
    # Character by character: normalising a long run of accents at once is quadratic.
    folded = "".join(unicodedata.normalize("NFKD", char) for char in text).casefold()
    return "".join(
        char
        for char in folded
        if char not in _ASCII_PUNCTUATION and not _is_invisible(char) and not unicodedata.category(char).startswith("P")
    )
