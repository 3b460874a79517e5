"""Channels, lanes, streams, messages, receipts, the raw log."""

from messaging.models.channels import Channel, Lane, Stream
from messaging.models.limits import LaneDay, OrganizationRules, Restriction
from messaging.models.log import CronRun, WebhookEvent
from messaging.models.messages import Message, Receipt

__all__ = [
    "Channel",
    "CronRun",
    "Lane",
    "LaneDay",
    "Message",
    "OrganizationRules",
    "Receipt",
    "Restriction",
    "Stream",
    "WebhookEvent",
]
