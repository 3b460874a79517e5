"""Fetching the file behind a URL that a caller gave, as WAHA's container would."""

import asyncio
import errno

from aiohttp import ClientError, ClientSession, ClientTimeout

from simulator import refusals

SECONDS = 60.0


class Fetcher:
    """One client for all; no key of WAHA's goes with it."""

    def __init__(self) -> None:
        self._client: ClientSession | None = None

    async def fetch(self, url: str) -> tuple[bytes, str]:
        """Bytes and content type. Raises EngineError in axios' words."""
        if self._client is None:
            self._client = ClientSession(timeout=ClientTimeout(total=SECONDS))
        try:
            async with self._client.get(url) as answer:
                if not 200 <= answer.status < 300:
                    raise _failed(f"Request failed with status code {answer.status}", "ERR_BAD_REQUEST", "AxiosError")
                return await answer.read(), answer.content_type
        except TimeoutError:
            raise _failed(f"timeout of {int(SECONDS * 1000)}ms exceeded", "ECONNABORTED", "AxiosError") from None
        except OSError as error:  # the client's errors of connecting are such, too
            raise _unreachable(error) from None
        except (ClientError, ValueError) as error:
            raise _failed(str(error) or "Invalid URL", "ERR_INVALID_URL", "TypeError") from None

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            await asyncio.sleep(0)  # its transports end in the next round


def _unreachable(error: OSError) -> refusals.EngineError:
    host, port = getattr(error, "host", None), getattr(error, "port", None)
    code = errno.errorcode.get(error.errno or 0, "ECONNRESET")
    if host is None or port is None:
        return _failed(f"socket hang up: {error}", code, "Error")
    if code not in ("ECONNREFUSED", "ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH"):
        return _failed(f"getaddrinfo ENOTFOUND {host}", "ENOTFOUND", "Error")
    return _failed(f"connect {code} {host}:{port}", code, "Error")


def _failed(message: str, code: str, name: str) -> refusals.EngineError:
    return refusals.EngineError(message, name=name, extra={"code": code, "config": {}})
