"""Why a text is not a phone: one closed list of words."""

from enum import StrEnum


class Reason(StrEnum):
    """Stable words; they appear in imports, in the API and after `REJECT:`."""

    EMPTY = "empty"
    CHARS = "chars"
    SCIENTIFIC = "scientific"
    INVALID = "invalid"
    DDD = "ddd"
    AMBIGUOUS = "ambiguous"
    SERVICE = "service"
    MULTIPLE = "multiple"
    EXTENSION = "extension"
    LID = "lid"
    BSUID = "bsuid"
    GROUP = "group"
    NEWSLETTER = "newsletter"
    BROADCAST = "broadcast"
    SYSTEM = "system"


class PhoneRejected(ValueError):
    """The text names no phone that may be written to.

    `explanation` is one line for a person; it never repeats the text itself.
    """

    def __init__(self, reason: Reason, explanation: str) -> None:
        super().__init__(f"{reason.value}: {explanation}")
        self.reason = reason
        self.explanation = explanation
