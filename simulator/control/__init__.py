"""The control API under /control/: what a test or a person does to phones, sessions and the network."""

from simulator.control import groups, messages, server, sessions
from simulator.control.guard import local

ROUTES = [*server.ROUTES, *sessions.ROUTES, *messages.ROUTES, *groups.ROUTES]

__all__ = ["ROUTES", "local"]
