"""Become another program that cannot outlive its parent. Run as a script, standard library only.

    python -I -S launch.py PARENT_PID DEATH_SIGNAL UID:GID|- PROGRAM ARGUMENT...

A step of its own between `fork` and the program, because `preexec_fn` is unsafe in a process with threads,
and because the kernel forgets the death signal whenever the user changes: it must be set after that.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1

# What a background shell job or a careless parent may have ignored or blocked; programs expect the defaults.
_RESET = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGQUIT,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGCHLD,
)


def _drop_to(user: str) -> None:
    if user == "-":
        return
    uid, _, gid = user.partition(":")
    os.setgroups([])
    os.setgid(int(gid))
    os.setuid(int(uid))


def _die_with(parent: int, death_signal: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, death_signal, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:
        sys.exit("the parent was gone before this process began")


def main(arguments: list[str]) -> None:
    """Drop to the user, tie this process to its parent, and become the program."""
    parent, death_signal, user, *command = arguments
    for number in _RESET:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, set())
    _drop_to(user)
    _die_with(int(parent), int(death_signal))
    os.execvpe(command[0], command, os.environ)


if __name__ == "__main__":
    main(sys.argv[1:])
