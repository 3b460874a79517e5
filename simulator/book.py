"""The book: what each phone got, and when the simulator acted."""

import hashlib
import json
import os
import time
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from simulator.files import File


@dataclass(slots=True)
class Entry:
    """One message that reached a phone. Times in epoch seconds, `acted_monotonic` in clock seconds.

    `id_given` says that the caller drew the id and the simulator took it, `repeated` that the same id
    went to the same chat before. `answered` is the status sent back, or how the answer failed. `reply_to`
    is the bare id of the quoted message, `target` of the one that a reaction, an edit or a revoke is about;
    `file` has `mimetype, filename, size, sha256`.
    """

    seq: int
    session: str
    chat_id: str
    text: str | None
    id: str
    id_given: bool
    repeated: bool
    source: str
    requested_at: float
    acted_at: float
    acted_monotonic: float
    answered: str | None = None
    answered_at: float | None = None
    kind: str = "text"
    reply_to: str | None = None
    target: str | None = None
    file: dict[str, Any] | None = None


_FIELDS = tuple(field.name for field in fields(Entry))


def _as_row(entry: Entry) -> dict[str, Any]:
    """A flat copy; `asdict` would copy deeply, at ten times the cost."""
    return {name: getattr(entry, name) for name in _FIELDS}


def _describe(file: File) -> dict[str, Any]:
    digest = hashlib.sha256(file.data).hexdigest()
    return {"mimetype": file.mimetype, "filename": file.filename, "size": len(file.data), "sha256": digest}


class Book:
    """Kept in memory; with a file, appended there too and read back at the next start."""

    def __init__(self, path: Path | None = None) -> None:
        self._entries: list[Entry] = []
        self._seen: set[tuple[str, str, str]] = set()
        self._seq = 0
        self._descriptor: int | None = None
        if path is not None:
            self._read_back(path)
            self._descriptor = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
            if self._entries or path.stat().st_size:
                os.write(self._descriptor, b"\n")  # ends a line that a kill cut short

    def record(
        self,
        *,
        session: str,
        chat_id: str,
        text: str | None,
        message_id: str,
        id_given: bool,
        source: str,
        requested_at: float,
        kind: str = "text",
        reply_to: str | None = None,
        target: str | None = None,
        file: File | None = None,
    ) -> Entry:
        """Write down that a phone got a message, now."""
        key = (session, chat_id, message_id)
        self._seq += 1
        entry = Entry(
            seq=self._seq,
            session=session,
            chat_id=chat_id,
            text=text,
            id=message_id,
            id_given=id_given,
            repeated=key in self._seen,
            source=source,
            requested_at=requested_at,
            acted_at=time.time(),
            acted_monotonic=time.monotonic(),
            kind=kind,
            reply_to=reply_to,
            target=target,
            file=None if file is None else _describe(file),
        )
        self._seen.add(key)
        self._entries.append(entry)
        if self._descriptor is not None:
            self._append(_as_row(entry))
        return entry

    def answer(self, entry: Entry, how: str) -> None:
        """Write down how the caller was answered."""
        entry.answered = how
        entry.answered_at = time.time()
        if self._descriptor is not None:
            self._append({"seq": entry.seq, "answered": how, "answered_at": entry.answered_at})

    def entries(
        self,
        *,
        session: str | None = None,
        chat_id: str | None = None,
        since: float | None = None,
        source: str | None = None,
    ) -> list[dict[str, Any]]:
        """In the order in which the simulator acted; `since` is an `acted_at`."""
        return [
            _as_row(entry)
            for entry in self._entries
            if (session is None or entry.session == session)
            and (chat_id is None or entry.chat_id == chat_id)
            and (since is None or entry.acted_at >= since)
            and (source is None or entry.source == source)
        ]

    def clear(self) -> int:
        """Forget all, in the file too; returns how many there were."""
        count = len(self._entries)
        self._entries.clear()
        self._seen.clear()
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)
        return count

    def __len__(self) -> int:
        return len(self._entries)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _append(self, row: dict[str, Any]) -> None:
        if self._descriptor is not None:
            os.write(self._descriptor, json.dumps(row).encode() + b"\n")

    def _read_back(self, path: Path) -> None:
        if not path.exists():
            return
        by_seq: dict[int, Entry] = {}
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                row = json.loads(line)
            except ValueError:  # an empty line, or one that a kill cut short
                continue
            if "acted_at" in row:
                by_seq[row["seq"]] = Entry(**row)
            elif row["seq"] in by_seq:
                by_seq[row["seq"]].answered = row["answered"]
                by_seq[row["seq"]].answered_at = row["answered_at"]
        self._entries = [by_seq[seq] for seq in sorted(by_seq)]
        self._seen = {(entry.session, entry.chat_id, entry.id) for entry in self._entries}
        self._seq = max(by_seq, default=0)
