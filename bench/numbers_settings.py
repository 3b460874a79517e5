"""The product's settings with two kinds of numbers more (bench.adapters)."""

from broadcast_project.settings import *  # noqa: F403
from broadcast_project.settings import CHANNEL_ADAPTERS as _OURS

CHANNEL_ADAPTERS = {**_OURS, "pooled": "bench.adapters.PooledNumber", "serial": "bench.adapters.SerialNumber"}
