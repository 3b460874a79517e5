"""What a full disk does to the embedded services, in words: what they say themselves may find no room either."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from broadcast_project.embedded.errors import AlreadyRunningError, EmbeddedError
from broadcast_project.embedded.layout import Layout

# PostgreSQL writes its log ahead in files of 16 MB, and wants one more before it lets go of the last.
_LEAST = 32 * 1024 * 1024
_FULL = {errno.ENOSPC, errno.EDQUOT}


def shortage(layout: Layout) -> str:
    """Which disk has too little room, and what to do; empty where both have enough."""
    for folder in (layout.base, layout.state):
        free = _free(_existing(folder))
        if free < _LEAST:
            return (
                f"the disk of {folder} is full ({free // 1024**2} MB free): make room there, some 200 MB."
                " Nothing that was committed is lost"
            )
    return ""


@contextmanager
def explained(layout: Layout) -> Iterator[None]:
    """Turn what a full disk causes into an EmbeddedError that says so."""
    try:
        yield
    except AlreadyRunningError:
        raise
    except EmbeddedError as error:
        if lack := shortage(layout):
            raise EmbeddedError(f"{lack}\n{error}") from error
        raise
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise EmbeddedError(shortage(layout) or f"the disk of {layout.state} is full: {error}") from error


def _existing(folder: Path) -> Path:
    """The folder, or the nearest above it that is there."""
    return next(place for place in (folder, *folder.parents) if place.exists())


def _free(folder: Path) -> int:
    """Bytes that we may still write there; 0 where no file can be made any more."""
    found = os.statvfs(folder)
    # Some file systems have no fixed number of files, and tell 0 of 0.
    no_file_left = found.f_files > 0 and found.f_favail == 0
    return 0 if no_file_left else found.f_bavail * found.f_frsize
