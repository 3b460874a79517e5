"""Who is on WhatsApp: the numbers, their registered form, their names and their hidden ids."""

from dataclasses import dataclass

from simulator import addresses

_SHORTEST, _LONGEST = 8, 15


@dataclass(slots=True)
class Number:
    """What WhatsApp knows of a phone; `chat_id` where it is registered under another form."""

    exists: bool = True
    chat_id: str | None = None
    lid: str | None = None
    picture: str | None = None
    about: str | None = None


@dataclass(frozen=True, slots=True)
class Person:
    """An entry of a session's address book: `name` as saved there, `push_name` as the person calls himself."""

    chat_id: str
    lid: str | None = None
    name: str | None = None
    push_name: str | None = None


class Directory:
    """Every number of 8 to 15 digits exists unless the control API says otherwise."""

    def __init__(self) -> None:
        self._numbers: dict[str, Number] = {}

    def put(self, phone: str, number: Number) -> None:
        self._numbers[phone] = number

    def get(self, phone: str) -> Number | None:
        return self._numbers.get(phone)

    def look_up(self, phone: str) -> str | None:
        """The chat id of a number (digits, a leading + allowed), None when it is not on WhatsApp."""
        digits = phone.removeprefix("+")
        number = self._numbers.get(digits)
        if number is not None:
            return (number.chat_id or f"{digits}@c.us") if number.exists else None
        if digits.isascii() and digits.isdigit() and _SHORTEST <= len(digits) <= _LONGEST:
            return f"{digits}@c.us"
        return None

    def lid_of(self, phone: str) -> str:
        """The hidden id of a phone: as told, else one drawn from the number."""
        number = self._numbers.get(phone)
        return (number.lid if number is not None else None) or addresses.lid_of(phone)

    def receives(self, chat_id: str) -> bool:
        """Whether a phone stands behind a chat; groups and lids are taken on trust."""
        if not chat_id.endswith("@c.us"):
            return chat_id.endswith(("@lid", "@g.us", "@s.whatsapp.net"))
        return self.look_up(addresses.phone_of(chat_id)) is not None
