"""WAHA's engines: the same deeds in three shapes."""

from simulator.engines.base import Engine, Me, payload, stored
from simulator.engines.gows import Gows
from simulator.engines.noweb import Noweb
from simulator.engines.webjs import Webjs

ENGINES: dict[str, Engine] = {engine.name: engine for engine in (Noweb(), Gows(), Webjs())}

__all__ = ["ENGINES", "Engine", "Me", "payload", "stored"]
