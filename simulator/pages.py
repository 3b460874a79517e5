"""The page on which a person scans a QR, reads what a phone got and answers as that phone."""

from pathlib import Path

from aiohttp import web

from simulator.control import local
from simulator.control.guard import Route

_FOLDER = Path(__file__).parent / "page"
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "media-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}


async def index(request: web.Request) -> web.Response:  # noqa: ARG001 - a handler's shape
    return _serve("index.html")


async def asset(request: web.Request) -> web.Response:
    return _serve(request.match_info["name"])


def _serve(name: str) -> web.Response:
    path = _FOLDER / name
    if path.parent != _FOLDER or path.suffix not in _TYPES or not path.is_file():
        raise web.HTTPNotFound
    return web.Response(body=path.read_bytes(), content_type=_TYPES[path.suffix], charset="utf-8", headers=_HEADERS)


ROUTES: list[Route] = [
    ("GET", "/", local(index)),
    ("GET", "/page/{name}", local(asset)),
]
