"""`python -m simulator`: serve until told to end."""

import asyncio
import contextlib
import ctypes
import gc
import json
import os
import resource
import signal
import sys
from pathlib import Path

import uvloop
from aiohttp import web

from simulator import app
from simulator.options import Options, from_arguments

_PR_SET_PDEATHSIG = 1
_SHUTDOWN_SECONDS = 0.2


def main() -> None:
    options = from_arguments(sys.argv[1:])
    parent = os.getppid()
    if options.die_with_parent:
        _die_with(parent)
    _raise_file_limit()
    # The book and the messages only grow: looking through them often finds nothing to free.
    gc.set_threshold(50_000, 20, 100)
    uvloop.run(_serve(options, parent))


async def _serve(options: Options, parent: int) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    runner = web.AppRunner(
        app.build(options),
        access_log=None,
        keepalive_timeout=options.keepalive,
        shutdown_timeout=_SHUTDOWN_SECONDS,
    )
    await runner.setup()
    site = web.TCPSite(runner, options.host, options.port, backlog=1024)
    try:
        await site.start()
    except OSError as error:
        await runner.cleanup()
        where = f"{options.host}:{options.port}"
        sys.exit(f"simulator: can't listen on {where} ({os.strerror(error.errno or 0)}): choose another with --port")
    port = runner.addresses[0][1]
    _tell(options, port)
    try:
        if options.die_with_parent:
            await _ended_or_orphaned(ended, parent)
        else:
            await ended.wait()
    finally:
        await runner.cleanup()


def _tell(options: Options, port: int) -> None:
    if options.port_file is not None:
        written = options.port_file.with_name(f"{options.port_file.name}.{os.getpid()}")
        written.write_text(f"{port}\n")
        Path(written).replace(options.port_file)
    line = {"event": "listening", "host": options.host, "port": port, "url": f"http://{options.host}:{port}"}
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


async def _ended_or_orphaned(ended: asyncio.Event, parent: int) -> None:
    """Where the kernel gives no signal at a parent's death, it is looked for."""
    while os.getppid() == parent:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), timeout=1.0)
            return


def _die_with(parent: int) -> None:
    """Have the kernel end this process with its parent (Linux); ends now if that came first."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(0)


def _raise_file_limit() -> None:
    """Thousands of sends at once are thousands of sockets."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65536 if hard == resource.RLIM_INFINITY else min(hard, 65536)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


if __name__ == "__main__":
    main()
