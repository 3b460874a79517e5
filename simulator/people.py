"""A session's address book: whom it saved or heard from, and which hidden ids it can tell the phone of."""

from dataclasses import replace

from simulator.directory import Person


class AddressBook:
    """Keys are chat ids in the public form."""

    def __init__(self) -> None:
        self._people: dict[str, Person] = {}
        self._phones: dict[str, str] = {}

    def save(
        self, chat_id: str, *, name: str | None = None, push_name: str | None = None, lid: str | None = None
    ) -> Person:
        """Enter someone, or change what is given."""
        person = self._people.get(chat_id) or Person(chat_id)
        given = {"name": name, "push_name": push_name, "lid": lid}
        person = replace(person, **{key: value for key, value in given.items() if value is not None})
        self._people[chat_id] = person
        if lid is not None:
            self.learn(lid, chat_id)
        return person

    def find(self, chat_id: str) -> Person | None:
        """By phone, or by a hidden id whose phone is known."""
        return self._people.get(chat_id) or self._people.get(self._phones.get(chat_id, ""))

    def all(self) -> list[Person]:
        return list(self._people.values())

    def name_of(self, chat_id: str) -> str | None:
        person = self.find(chat_id)
        return None if person is None else person.name or person.push_name

    def learn(self, lid: str, pn: str) -> None:
        """From now on it is known whose hidden id this is."""
        self._phones[lid] = pn

    def forget_lids(self) -> int:
        """Returns how many."""
        count = len(self._phones)
        self._phones.clear()
        return count

    def lids(self) -> list[tuple[str, str]]:
        """Pairs of hidden id and phone."""
        return list(self._phones.items())

    def pn_of(self, lid: str) -> str | None:
        return self._phones.get(lid)

    def lid_of(self, pn: str) -> str | None:
        return next((lid for lid, phone in self._phones.items() if phone == pn), None)

    def both(self, chat_id: str) -> frozenset[str]:
        """A chat under all of its known ids."""
        other = self._phones.get(chat_id) if chat_id.endswith("@lid") else self.lid_of(chat_id)
        return frozenset({chat_id} if other is None else {chat_id, other})

    def clear(self) -> None:
        self._people.clear()
        self._phones.clear()
