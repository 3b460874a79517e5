"""The order of what may become of a message; status moves forward only (SQL twin: engine_rank)."""

from __future__ import annotations

from messaging.models import Message

FAILED = -1
PENDING = 0
SENT = 3
DELIVERED = 4
READ = 5
PLAYED = 6

# The smallest state words are exclusive; "sent", "delivered" and "read" of the contract are sums of them.
WAS_SENT = (
    Message.Status.SENT,
    Message.Status.DELIVERED,
    Message.Status.READ,
    Message.Status.PLAYED,
)
WAS_DELIVERED = (Message.Status.DELIVERED, Message.Status.READ, Message.Status.PLAYED)
WAS_READ = (Message.Status.READ, Message.Status.PLAYED)
# Nobody is done with these: a broadcast with one of them goes on.
UNFINISHED = (Message.Status.QUEUED, Message.Status.CLAIMED, Message.Status.SENDING)
