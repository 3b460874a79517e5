"""The files of messages, for as long as they are kept."""

import base64

from aiohttp import web

from simulator.api.guard import EMPTY_HEADERS, WORLD, Handler, read_body, reply
from simulator.files import File, sample


async def read(request: web.Request) -> web.Response:
    """404 in a shape of its own when it is gone."""
    session, name = request.match_info["session"], request.match_info["name"]
    file = request.app[WORLD].files.get(session, name)
    if file is None:
        error = {"code": 404, "key": "FILE_NOT_FOUND", "message": "File not found", "details": f"/{session}/{name}"}
        return reply(404, {"error": error})
    return serve(file)


def serve(file: File) -> web.Response:
    return web.Response(body=file.data, headers=EMPTY_HEADERS | {"Content-Type": file.mimetype})


def convert(kind: str) -> Handler:
    """A handler that turns a file into what a phone plays: a sample, whatever was given."""

    async def converted(request: web.Request) -> web.Response:
        await request.app[WORLD].ready(request.match_info["session"])
        body = await read_body(request)
        if body.get("url"):
            await request.app[WORLD].fetcher.fetch(str(body["url"]))
        file = sample(kind)
        if request.headers.get("Accept") == "application/json":
            data = base64.b64encode(file.data).decode()
            return reply(201, {"mimetype": file.mimetype, "data": data})
        return serve(file)

    return converted
