"""Which folder and file lies where.

An ordinary user's data lies beside the state files, in `var/embedded`. When root runs us the servers must run
as somebody else, who can enter neither a private home nor our checkout; so data and sockets lie in
`/var/tmp/broadcast-<hash of the state folder>`, and a copy of the programs in a folder beside it. No folder
that exists already is given another mode.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from broadcast_project.embedded.errors import EmbeddedError
from broadcast_project.supervisor.process import User

_POSTGRES = "postgres"
_SHARED = Path("/var/tmp")  # noqa: S108  each folder in it is checked to be ours
# `sun_path` holds 108 bytes with its end; PostgreSQL appends "/.s.PGSQL.5432" and, for the lock, ".lock".
_LONGEST_SOCKET_FOLDER = 107 - len("/.s.PGSQL.5432.lock")


@dataclass(frozen=True)
class Layout:
    """The places of one pair of services. `user` runs the servers, None when that is us."""

    state: Path
    name: str
    base: Path
    sockets: Path
    user: User | None

    @classmethod
    def of(cls, state: Path, name: str) -> Layout:
        """The places for a state folder, by who we are."""
        state = state.resolve() / "embedded"
        aside = _SHARED / f"broadcast-{_digest(f'{os.geteuid()}:{state}')}"
        user = _server_user(aside / name / _POSTGRES)
        base = aside / name if user else state / name
        sockets = base / "run"
        if len(os.fsencode(sockets)) > _LONGEST_SOCKET_FOLDER or "," in str(sockets):
            sockets = aside / name / "run"
        return cls(state, name, base, sockets, user)

    @property
    def lock(self) -> Path:
        return self.state / f"{self.name}.lock"

    @property
    def ready(self) -> Path:
        return self.state / f"{self.name}.ready"

    @property
    def credentials(self) -> Path:
        return self.state / f"{self.name}.json"

    @property
    def postgres(self) -> Path:
        return self.base / _POSTGRES

    @property
    def valkey(self) -> Path:
        return self.base / "valkey"

    @property
    def data_folders(self) -> tuple[Path, Path]:
        return (self.postgres, self.valkey)

    def log(self, service: str) -> Path:
        """The file a server's own words go to."""
        return self.state / f"{self.name}.{service}.log"

    def make_folders(self) -> None:
        """Make what is missing, and refuse what is there but not ours alone."""
        self.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in sorted({self.base, self.sockets.parent}):
            if _SHARED in folder.parents:
                _own(folder.parent, None, 0o711)
            _own(folder, None, 0o711)
        for folder in (self.sockets, self.valkey):
            _own(folder, self.user, 0o700)
        if self.postgres.exists():
            _own(self.postgres, self.user, 0o700)


def cache_folder(key: str) -> Path:
    """A folder of root's, readable by all, for copied programs; named by what was copied."""
    folder = _SHARED / f"broadcast-programs-{_digest(key)}"
    _own(folder, None, 0o755)
    return folder


def _own(folder: Path, user: User | None, mode: int) -> None:
    owner = user or User(os.geteuid(), os.getegid())
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        _check(folder, owner, mode)
        return
    os.chown(folder, owner.uid, owner.gid)
    folder.chmod(mode)


def _check(folder: Path, owner: User, mode: int) -> None:
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != owner.uid:
        raise EmbeddedError(f"{folder} is not a folder of user {owner.uid}; move it away")
    if stat.S_IMODE(found.st_mode) & ~mode:
        has = stat.S_IMODE(found.st_mode)
        raise EmbeddedError(f"{folder} has mode {has:04o}, others could reach it: chmod {mode:04o} it")


def _server_user(data: Path) -> User | None:
    """Whoever owns the data already; else an account of the machine that is nobody's."""
    if os.geteuid() != 0:
        return None
    with suppress(FileNotFoundError):
        found = data.stat()
        return User(found.st_uid, found.st_gid)
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return User(entry.pw_uid, entry.pw_gid)
    return User(65534, 65534)


def _digest(text: str) -> str:
    return hashlib.sha256(os.fsencode(text)).hexdigest()[:12]
