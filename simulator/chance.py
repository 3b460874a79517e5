"""Where chance and unique ids come from."""

import random
import time

_CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [first + second for first in _CROCKFORD for second in _CROCKFORD]
_BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"
_PAIRS36 = [first + second for first in _BASE36 for second in _BASE36]
_CODE_LETTERS = "123456789ABCDEFGHJKLMNPQRSTVWXYZ"
_BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


class Chance:
    """Repeatable under a seed; behaviour only, never ids."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.Random(seed)  # noqa: S311 - a simulation, no secret

    def hits(self, share: float) -> bool:
        """True in about `share` (0..1) of the calls; draws only when it matters."""
        if share >= 1.0:
            return True
        return share > 0.0 and self._random.random() < share

    def jitter(self) -> float:
        return self._random.random()


class Ids:
    """Ids in WAHA's forms, unique over restarts whatever the seed."""

    def __init__(self) -> None:
        self._random = random.Random()  # noqa: S311 - unique, not secret
        self._last_request_ms = 0
        self._ulid_ms = -1
        self._ulid_head = ""
        self._request_prefix = _base36(self._random.getrandbits(44))[:9].rjust(9, "0")

    def ulid(self, at_ms: int) -> str:
        """26 lower-case characters: 48 bits of time, 80 of chance."""
        bits = self._random.getrandbits(80)
        tail = "".join([_PAIRS[(bits >> shift) & 1023] for shift in range(70, -1, -10)])
        if at_ms != self._ulid_ms:
            self._ulid_ms = at_ms
            self._ulid_head = "".join(_PAIRS[(at_ms >> shift) & 1023] for shift in range(40, -1, -10))
        return self._ulid_head + tail

    def event(self, at_ms: int) -> str:
        return "evt_" + self.ulid(at_ms)

    def session_name(self) -> str:
        return "session_" + self.ulid(time.time_ns() // 1_000_000)

    def sent_message(self) -> str:
        """As Baileys draws it: `3EB0` and 18 upper-case hex digits."""
        return f"3EB0{self._random.getrandbits(72):018X}"

    def phone_message(self) -> str:
        """As a phone draws it: `3A` and 18 upper-case hex digits."""
        return f"3A{self._random.getrandbits(72):018X}"

    def group(self) -> str:
        return f"1203634{self._random.randrange(10**11):011}@g.us"

    def invite(self) -> str:
        """The last part of an invitation's link."""
        return "".join(self._random.choices(_BASE64[:-2], k=22))

    def request(self, at_ms: int) -> str:
        """`X-Webhook-Request-Id`: one prefix per process, then a time that never repeats."""
        self._last_request_ms = max(at_ms, self._last_request_ms + 1)
        return self._request_prefix + _base36(self._last_request_ms)

    def pairing_code(self) -> str:
        letters = "".join(self._random.choices(_CODE_LETTERS, k=8))
        return f"{letters[:4]}-{letters[4:]}"

    def qr(self) -> str:
        """`2@<ref>,<key>,<key>,<key>` with base64 of 64 and three times 32 bytes."""
        parts = [self._base64(86) + "=="] + [self._base64(43) + "=" for _ in range(3)]
        return "2@" + ",".join(parts)

    def _base64(self, length: int) -> str:
        return "".join(self._random.choices(_BASE64, k=length))


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, rest = divmod(number, 1296)
        digits = _PAIRS36[rest] + digits
    return digits.lstrip("0") or "0"
