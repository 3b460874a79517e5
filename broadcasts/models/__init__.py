"""Broadcasts and the people they were frozen for."""

from broadcasts.models.broadcast import Broadcast, Feed
from broadcasts.models.recipient import Recipient

__all__ = ["Broadcast", "Feed", "Recipient"]
