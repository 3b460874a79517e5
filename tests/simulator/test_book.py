"""The book of what each phone got."""

import hashlib
from pathlib import Path

from simulator.book import Book, Entry
from simulator.files import File


def write(
    book: Book, chat_id: str = "1@c.us", message_id: str = "3EB01", session: str = "acme", source: str = "api"
) -> Entry:
    return book.record(
        session=session,
        chat_id=chat_id,
        text="olá 👋",
        message_id=message_id,
        id_given=True,
        source=source,
        requested_at=1.0,
    )


def test_entries_stand_in_the_order_of_acting() -> None:
    book = Book()
    first, second = write(book, "1@c.us", "A"), write(book, "2@c.us", "B")
    found = book.entries()
    assert [entry["id"] for entry in found] == ["A", "B"]
    assert first.acted_at <= second.acted_at
    assert first.acted_monotonic <= second.acted_monotonic
    assert found[0]["answered"] is None


def test_the_same_id_to_the_same_chat_is_marked_as_repeated() -> None:
    book = Book()
    marks = [write(book, chat, "A").repeated for chat in ("1@c.us", "1@c.us", "2@c.us")]
    assert marks == [False, True, False]


def test_entries_are_filtered() -> None:
    book = Book()
    write(book, "1@c.us", "A")
    write(book, "2@c.us", "B", session="other")
    last = write(book, "1@c.us", "C", source="app")
    assert [entry["id"] for entry in book.entries(session="acme")] == ["A", "C"]
    assert [entry["id"] for entry in book.entries(chat_id="2@c.us")] == ["B"]
    assert [entry["id"] for entry in book.entries(since=last.acted_at)] == ["C"]
    assert [entry["id"] for entry in book.entries(source="api")] == ["A", "B"]


def test_clearing_says_how_many_there_were_and_forgets_repeats() -> None:
    book = Book()
    write(book)
    assert book.clear() == 1
    assert book.entries() == []
    assert write(book).repeated is False


def test_a_book_on_file_is_read_back_after_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "book.jsonl"
    book = Book(path)
    book.answer(write(book, "1@c.us", "A"), "201")
    write(book, "2@c.us", "B")
    with path.open("ab") as file:
        file.write(b'{"seq": 3, "session"')  # a line that the kill cut short
    again = Book(path)
    assert [(entry["id"], entry["answered"]) for entry in again.entries()] == [("A", "201"), ("B", None)]
    added = write(again, "1@c.us", "A")
    assert (added.seq, added.repeated) == (3, True)
    again.close()
    assert len(Book(path)) == 3


def test_clearing_empties_the_file_too(tmp_path: Path) -> None:
    path = tmp_path / "book.jsonl"
    book = Book(path)
    write(book)
    book.clear()
    book.close()
    assert Book(path).entries() == []


def test_half_an_emoji_survives_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "book.jsonl"
    book = Book(path)
    book.record(
        session="a", chat_id="1@c.us", text="\ud83d", message_id="A", id_given=False, source="api", requested_at=1.0
    )
    book.close()
    (entry,) = Book(path).entries()
    assert entry["text"] == "\ud83d"


def test_files_and_quotes_stand_in_the_book(tmp_path: Path) -> None:
    path = tmp_path / "book.jsonl"
    book = Book(path)
    book.record(
        session="a",
        chat_id="1@c.us",
        text=None,
        message_id="A",
        id_given=False,
        source="api",
        requested_at=1.0,
        kind="image",
        reply_to="B",
        file=File(b"abc", "image/png", "a.png"),
    )
    book.close()
    (entry,) = Book(path).entries()
    assert (entry["kind"], entry["reply_to"]) == ("image", "B")
    assert entry["file"] == {
        "mimetype": "image/png",
        "filename": "a.png",
        "size": 3,
        "sha256": hashlib.sha256(b"abc").hexdigest(),
    }
