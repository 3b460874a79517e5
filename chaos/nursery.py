"""`python -m chaos.nursery`: imports the product once and forks a process of it for each line that asks for one.

A fresh interpreter costs two seconds of a core, a fork some milliseconds; killed they are alike. It has no thread
and no connection, so that what it forks starts clean. Requests come on stdin, births and deaths go to stdout, one
JSON object a line; at the end of stdin every child is killed.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import select
import signal
import sys
import traceback
from contextlib import suppress
from typing import Any

_PR_SET_PDEATHSIG = 1
_TICK_SECONDS = 0.03


def main() -> int:
    _import_all()
    children: dict[int, str] = {}
    # Unbuffered: what a buffer held back, select would not see.
    requests = open(sys.stdin.fileno(), "rb", buffering=0, closefd=False)  # noqa: SIM115 - for good
    _tell(ready=True)
    while True:
        ready, _, _ = select.select([sys.stdin.fileno()], [], [], _TICK_SECONDS)
        if ready:
            line = requests.readline()
            if not line:
                break
            request = json.loads(line)
            pid = _fork(request)
            children[pid] = request["name"]
            _tell(born=request["name"], pid=pid)
        _bury(children)
    for pid in children:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    return 0


def _import_all() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "broadcast_project.settings")
    import django

    django.setup()
    from django.urls import get_resolver

    import channels_waha.adapter  # noqa: F401
    from broadcast_project.celery import app

    app.loader.import_default_modules()
    get_resolver().url_patterns  # noqa: B018 - imports every view
    gc.collect()
    gc.freeze()


def _fork(request: dict[str, Any]) -> int:
    pid = os.fork()
    if pid:
        with suppress(OSError):
            os.setpgid(pid, pid)
        return pid
    try:
        os.setpgid(0, 0)
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        log = os.open(request["log"], os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for number, target in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(number, target)
        from chaos import roles

        roles.become(request["role"], request)
    except SystemExit as ended:
        os._exit(ended.code if isinstance(ended.code, int) else 1)
    except BaseException:  # noqa: BLE001
        # An edge: nothing of the nursery's may run in a child.
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _bury(children: dict[int, str]) -> None:
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        # A web server that is killed leaves its worker on the port.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        if (name := children.pop(pid, None)) is not None:
            _tell(died=name, pid=pid, code=os.waitstatus_to_exitcode(status))


def _tell(**said: Any) -> None:
    os.write(1, json.dumps(said).encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main())
