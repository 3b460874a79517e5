"""Who is on WhatsApp: the numbers, their registered form and their hidden ids."""

from dataclasses import dataclass

from simulator import addresses

_SHORTEST, _LONGEST = 8, 15


@dataclass(slots=True)
class Number:
    """What WhatsApp knows of a phone; `chat_id` where it is registered under another form."""

    exists: bool = True
    chat_id: str | None = None


class Directory:
    """Every number of 8 to 15 digits exists unless the control API says otherwise."""

    def __init__(self) -> None:
        self._numbers: dict[str, Number] = {}

    def put(self, phone: str, number: Number) -> None:
        self._numbers[phone] = number

    def look_up(self, phone: str) -> str | None:
        """The chat id of a number (digits, a leading + allowed), None when it is not on WhatsApp."""
        digits = phone.removeprefix("+")
        number = self._numbers.get(digits)
        if number is not None:
            return (number.chat_id or f"{digits}@c.us") if number.exists else None
        if digits.isascii() and digits.isdigit() and _SHORTEST <= len(digits) <= _LONGEST:
            return f"{digits}@c.us"
        return None

    def receives(self, chat_id: str) -> bool:
        """Whether a phone stands behind a chat; groups and lids are taken on trust."""
        if not chat_id.endswith("@c.us"):
            return chat_id.endswith(("@lid", "@g.us", "@s.whatsapp.net"))
        return self.look_up(addresses.phone_of(chat_id)) is not None
