"""Time as the simulator tells it: real clocks, scaled waits."""

import asyncio
import time
from collections.abc import Callable


class Clock:
    """Waits of WAHA and of phones are multiplied by `scale`; timestamps are the real ones."""

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def scaled(self, seconds: float) -> float:
        return seconds * self.scale

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds * self.scale)

    def later(self, seconds: float, call: Callable[[], None]) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(seconds * self.scale, call)

    @staticmethod
    def now() -> float:
        """Epoch seconds."""
        return time.time()

    @staticmethod
    def now_ms() -> int:
        """Epoch milliseconds, as WAHA stamps its events."""
        return time.time_ns() // 1_000_000

    @staticmethod
    def monotonic() -> float:
        return time.monotonic()


class Signal:
    """Wakes all who wait for something to have changed."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def notify(self) -> None:
        self._event.set()
        self._event = asyncio.Event()

    async def wait(self, seconds: float) -> bool:
        """False when nothing changed within `seconds` (real ones)."""
        if seconds <= 0:
            return False
        try:
            await asyncio.wait_for(self._event.wait(), seconds)
        except TimeoutError:
            return False
        return True
