"""Files of messages: what is kept, for how long, and the samples that stand in for a real one."""

import hashlib
import time
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_SAMPLES = Path(__file__).parent / "samples"
# kind → a small real file and its type.
SAMPLES = {
    "image": ("image.jpg", "image/jpeg"),
    "video": ("video.mp4", "video/mp4"),
    "video_note": ("video.mp4", "video/mp4"),
    "audio": ("audio.mp3", "audio/mpeg"),
    "voice": ("voice.ogg", "audio/ogg; codecs=opus"),
    "document": ("document.pdf", "application/pdf"),
    "sticker": ("sticker.webp", "image/webp"),
}
_EXTENSIONS = {
    "image/jpeg": "jpeg",
    "image/png": "png",
    "image/webp": "webp",
    "image/gif": "gif",
    "video/mp4": "mp4",
    "audio/ogg": "oga",
    "audio/mpeg": "mp3",
    "audio/mp4": "m4a",
    "application/pdf": "pdf",
    "text/plain": "txt",
    "text/html": "html",
    "image/svg+xml": "svg",
}


@dataclass(frozen=True, slots=True)
class File:
    """What is sent or received; `filename` as the sender calls it."""

    data: bytes
    mimetype: str
    filename: str | None = None

    def bare(self) -> "File":
        """All but the bytes: what a message remembers of it."""
        return File(b"", self.mimetype, self.filename)

    @property
    def extension(self) -> str:
        return _EXTENSIONS.get(self.mimetype.partition(";")[0].strip().lower(), "bin")


@cache
def sample(kind: str) -> File:
    """A real file of this kind, so that what a receiver sniffs is what it is told."""
    name, mimetype = SAMPLES[kind]
    return File((_SAMPLES / name).read_bytes(), mimetype, name if kind == "document" else None)


class FileStore:
    """Files under the name in their URL, for `lifetime` real seconds (0 keeps them).

    What is sent to thousands is held once: the bytes stand under their digest.
    """

    def __init__(self, *, base_url: str, lifetime: float) -> None:
        self._base_url = base_url.rstrip("/")
        self._lifetime = lifetime
        self._files: dict[tuple[str, str], _Kept] = {}
        self._data: dict[bytes, bytes] = {}
        self._holders: Counter[bytes] = Counter()

    def put(self, session: str, message_id: str, file: File) -> str:
        """Keep it; returns the URL that WAHA would show."""
        self._drop_old()
        name = f"{message_id}.{file.extension}"
        digest = hashlib.sha256(file.data).digest()
        self._drop((session, name))
        self._data.setdefault(digest, file.data)
        self._holders[digest] += 1
        self._files[session, name] = _Kept(time.monotonic(), digest, file.mimetype, file.filename)
        return f"{self._base_url}/api/files/{session}/{name}"

    def get(self, session: str, name: str) -> File | None:
        self._drop_old()
        kept = self._files.get((session, name))
        return None if kept is None else File(self._data[kept.digest], kept.mimetype, kept.filename)

    def remove(self, session: str, name: str | None = None) -> int:
        """One file of a session or all of them, as when WAHA has cleaned up; returns how many."""
        found = [key for key in self._files if key[0] == session and name in (None, key[1])]
        for key in found:
            self._drop(key)
        return len(found)

    def clear(self) -> None:
        self._files.clear()
        self._data.clear()
        self._holders.clear()

    @property
    def bytes_held(self) -> int:
        return sum(map(len, self._data.values()))

    def _drop(self, key: tuple[str, str]) -> None:
        kept = self._files.pop(key, None)
        if kept is None:
            return
        self._holders[kept.digest] -= 1
        if not self._holders[kept.digest]:
            del self._holders[kept.digest], self._data[kept.digest]

    def _drop_old(self) -> None:
        """The oldest stand first."""
        if not self._lifetime:
            return
        oldest = time.monotonic() - self._lifetime
        while self._files:
            key = next(iter(self._files))
            if self._files[key].at > oldest:
                return
            self._drop(key)


@dataclass(frozen=True, slots=True)
class _Kept:
    """`at` in clock seconds."""

    at: float
    digest: bytes
    mimetype: str
    filename: str | None
