"""All routes together."""

from collections.abc import AsyncIterator

from aiohttp import web

from simulator import control
from simulator.api import auth, chats, chatting, contacts, server, sessions
from simulator.api.guard import WORLD, Handler, guarded
from simulator.options import Options
from simulator.world import World

# WAHA takes bodies up to 50 MB.
LARGEST_BODY = 50 * 1024 * 1024

# Method, path, the name under which faults find it, handler. The busiest stands first.
ROUTES: list[tuple[str, str, str, Handler]] = [
    ("POST", "/api/sendText", "sendText", chatting.send_text),
    ("POST", "/api/startTyping", "startTyping", chatting.typing),
    ("POST", "/api/stopTyping", "stopTyping", chatting.typing),
    ("POST", "/api/sendSeen", "sendSeen", chatting.send_seen),
    ("GET", "/health", "health", server.health),
    ("GET", "/api/server/version", "version", server.version),
    ("GET", "/api/version", "version", server.version),
    ("GET", "/api/server/status", "status", server.status),
    ("POST", "/api/sessions", "createSession", sessions.create),
    ("GET", "/api/sessions", "listSessions", sessions.list_all),
    ("POST", "/api/sessions/start", "startSession", sessions.start_deprecated),
    ("GET", "/api/sessions/{session}", "getSession", sessions.read),
    ("PUT", "/api/sessions/{session}", "updateSession", sessions.update),
    ("DELETE", "/api/sessions/{session}", "deleteSession", sessions.delete),
    ("GET", "/api/sessions/{session}/me", "getMe", sessions.read_me),
    ("POST", "/api/sessions/{session}/start", "startSession", sessions.start),
    ("POST", "/api/sessions/{session}/stop", "stopSession", sessions.stop),
    ("POST", "/api/sessions/{session}/restart", "restartSession", sessions.restart),
    ("POST", "/api/sessions/{session}/logout", "logoutSession", sessions.logout),
    ("GET", "/api/contacts/check-exists", "checkExists", contacts.check_exists),
    ("GET", "/api/{session}/auth/qr", "qr", auth.qr),
    ("POST", "/api/{session}/auth/request-code", "requestCode", auth.request_code),
    ("GET", "/api/{session}/new-message-id", "newMessageId", chatting.new_message_id),
    ("GET", "/api/{session}/chats/{chat_id}/messages/{message_id}", "getMessage", chats.message_by_id),
]


def build(options: Options) -> web.Application:
    """The application with its world, which is closed with it."""
    application = web.Application(client_max_size=LARGEST_BODY)
    application[WORLD] = World(options)
    for method, path, op, handler in ROUTES:
        application.router.add_route(method, path, guarded(op, handler))
    application.router.add_get("/ping", guarded("ping", server.ping, needs_key=False))
    for method, path, handler in control.ROUTES:
        application.router.add_route(method, path, control.local(handler))
    application.router.add_route("*", "/{rest:.*}", guarded("unknown", server.unknown))
    application.cleanup_ctx.append(_world)
    return application


async def _world(application: web.Application) -> AsyncIterator[None]:
    yield
    await application[WORLD].close()
