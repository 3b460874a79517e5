"""All routes together."""

from collections.abc import AsyncIterator

from aiohttp import web

from simulator import control, grouping, pages
from simulator.api import attachments, auth, chats, chatting, contacts, files, groups, messages, server, sessions
from simulator.api.guard import WORLD, Handler, guarded
from simulator.options import Options
from simulator.world import World

# WAHA takes bodies up to 50 MB.
LARGEST_BODY = 50 * 1024 * 1024

_GROUP = "/api/{session}/groups/{group_id}"

# Method, path, the name under which faults find it, handler. The busiest stands first.
ROUTES: list[tuple[str, str, str, Handler]] = [
    ("POST", "/api/sendText", "sendText", chatting.send_text),
    ("POST", "/api/startTyping", "startTyping", chatting.typing),
    ("POST", "/api/stopTyping", "stopTyping", chatting.typing),
    ("POST", "/api/sendSeen", "sendSeen", chatting.send_seen),
    ("GET", "/api/sendText", "sendText", chatting.send_text_by_query),
    ("POST", "/api/sendImage", "sendImage", attachments.send_file("image")),
    ("POST", "/api/sendFile", "sendFile", attachments.send_file("document")),
    ("POST", "/api/sendVoice", "sendVoice", attachments.send_file("voice")),
    ("POST", "/api/sendVideo", "sendVideo", attachments.send_file("video")),
    ("POST", "/api/sendLocation", "sendLocation", attachments.send_location),
    ("POST", "/api/sendContactVcard", "sendContactVcard", attachments.send_contacts),
    ("POST", "/api/sendPoll", "sendPoll", attachments.send_poll),
    ("POST", "/api/forwardMessage", "forwardMessage", attachments.forward),
    ("PUT", "/api/reaction", "reaction", messages.react),
    ("GET", "/health", "health", server.health),
    ("GET", "/api/server/version", "version", server.version),
    ("GET", "/api/version", "version", server.version),
    ("GET", "/api/server/status", "status", server.status),
    ("GET", "/api/server/environment", "environment", server.environment),
    ("POST", "/api/server/stop", "stopServer", server.stop),
    ("POST", "/api/sessions", "createSession", sessions.create),
    ("GET", "/api/sessions", "listSessions", sessions.list_all),
    ("POST", "/api/sessions/start", "startSession", sessions.start_deprecated),
    ("POST", "/api/sessions/stop", "stopSession", sessions.stop_deprecated),
    ("POST", "/api/sessions/logout", "logoutSession", sessions.logout_deprecated),
    ("GET", "/api/sessions/{session}", "getSession", sessions.read),
    ("PUT", "/api/sessions/{session}", "updateSession", sessions.update),
    ("DELETE", "/api/sessions/{session}", "deleteSession", sessions.delete),
    ("GET", "/api/sessions/{session}/me", "getMe", sessions.read_me),
    ("POST", "/api/sessions/{session}/start", "startSession", sessions.start),
    ("POST", "/api/sessions/{session}/stop", "stopSession", sessions.stop),
    ("POST", "/api/sessions/{session}/restart", "restartSession", sessions.restart),
    ("POST", "/api/sessions/{session}/logout", "logoutSession", sessions.logout),
    ("GET", "/api/contacts", "getContact", contacts.read_contact),
    ("GET", "/api/contacts/all", "listContacts", contacts.list_contacts),
    ("GET", "/api/contacts/check-exists", "checkExists", contacts.check_exists),
    ("GET", "/api/checkNumberStatus", "checkExists", contacts.check_exists),
    ("GET", "/api/contacts/about", "about", contacts.about),
    ("GET", "/api/contacts/profile-picture", "profilePicture", contacts.profile_picture),
    ("GET", "/api/messages", "listMessages", messages.list_messages_by_query),
    ("GET", "/api/screenshot", "screenshot", auth.screenshot),
    ("GET", "/api/files/{session}/{name}", "getFile", files.read),
    ("GET", "/api/{session}/auth/qr", "qr", auth.qr),
    ("POST", "/api/{session}/auth/request-code", "requestCode", auth.request_code),
    ("GET", "/api/{session}/new-message-id", "newMessageId", chatting.new_message_id),
    ("GET", "/api/{session}/timelock", "timelock", sessions.timelock),
    ("GET", "/api/{session}/capping", "capping", sessions.capping),
    ("GET", "/api/{session}/chats", "listChats", chats.list_chats),
    ("GET", "/api/{session}/chats/overview", "overview", chats.overview),
    ("POST", "/api/{session}/chats/overview", "overview", chats.overview_by_body),
    ("GET", "/api/{session}/chats/{chat_id}/picture", "chatPicture", chats.picture),
    ("GET", "/api/{session}/chats/{chat_id}/messages", "listMessages", messages.list_messages),
    ("POST", "/api/{session}/chats/{chat_id}/messages/read", "readMessages", messages.read_all),
    ("GET", "/api/{session}/chats/{chat_id}/messages/{message_id}", "getMessage", messages.message_by_id),
    ("PUT", "/api/{session}/chats/{chat_id}/messages/{message_id}", "editMessage", messages.edit),
    ("DELETE", "/api/{session}/chats/{chat_id}/messages/{message_id}", "deleteMessage", messages.delete),
    ("GET", "/api/{session}/contacts/{chat_id}", "getContact", contacts.read_contact_by_path),
    ("PUT", "/api/{session}/contacts/{chat_id}", "saveContact", contacts.save_contact),
    ("GET", "/api/{session}/lids", "listLids", contacts.list_lids),
    ("GET", "/api/{session}/lids/count", "countLids", contacts.count_lids),
    ("GET", "/api/{session}/lids/pn/{phone}", "lidOfPhone", contacts.lid_of_phone),
    ("GET", "/api/{session}/lids/{lid}", "phoneOfLid", contacts.phone_of_lid),
    ("POST", "/api/{session}/media/convert/voice", "convert", files.convert("voice")),
    ("POST", "/api/{session}/media/convert/video", "convert", files.convert("video")),
    ("GET", "/api/{session}/groups", "listGroups", groups.list_all),
    ("POST", "/api/{session}/groups", "createGroup", groups.create),
    ("GET", "/api/{session}/groups/count", "countGroups", groups.count),
    ("GET", "/api/{session}/groups/join-info", "joinInfo", groups.join_info),
    ("POST", "/api/{session}/groups/join", "joinGroup", groups.join),
    ("POST", "/api/{session}/groups/refresh", "refreshGroups", groups.refresh),
    ("GET", _GROUP, "getGroup", groups.read),
    ("DELETE", _GROUP, "leaveGroup", groups.leave),
    ("POST", f"{_GROUP}/leave", "leaveGroup", groups.leave),
    ("GET", f"{_GROUP}/picture", "groupPicture", groups.picture),
    ("PUT", f"{_GROUP}/subject", "updateGroup", groups.update("subject", "subject")),
    ("PUT", f"{_GROUP}/description", "updateGroup", groups.update("description", "description")),
    ("GET", f"{_GROUP}/settings/security/messages-admin-only", "getGroup", groups.setting("announce")),
    ("GET", f"{_GROUP}/settings/security/info-admin-only", "getGroup", groups.setting("info_admins_only")),
    (
        "PUT",
        f"{_GROUP}/settings/security/messages-admin-only",
        "updateGroup",
        groups.update("adminsOnly", "announce"),
    ),
    (
        "PUT",
        f"{_GROUP}/settings/security/info-admin-only",
        "updateGroup",
        groups.update("adminsOnly", "info_admins_only"),
    ),
    ("GET", f"{_GROUP}/invite-code", "inviteCode", groups.invite_code),
    ("POST", f"{_GROUP}/invite-code/revoke", "inviteCode", groups.revoke_invite_code),
    ("GET", f"{_GROUP}/participants", "listParticipants", groups.participants),
    ("GET", f"{_GROUP}/participants/v2", "listParticipants", groups.participants_v2),
    ("POST", f"{_GROUP}/participants/add", "changeParticipants", groups.add),
    ("POST", f"{_GROUP}/participants/remove", "changeParticipants", groups.change(grouping.remove)),
    ("POST", f"{_GROUP}/admin/promote", "changeParticipants", groups.change(grouping.promote)),
    ("POST", f"{_GROUP}/admin/demote", "changeParticipants", groups.change(grouping.demote)),
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
    for method, path, handler in pages.ROUTES:
        application.router.add_route(method, path, handler)
    application.router.add_route("*", "/{rest:.*}", guarded("unknown", server.unknown))
    application.cleanup_ctx.append(_world)
    return application


async def _world(application: web.Application) -> AsyncIterator[None]:
    yield
    await application[WORLD].close()
