"""Channels, lanes, streams, messages, receipts, the raw log."""

from messaging.models.channels import Channel, Lane, Stream
from messaging.models.log import CronRun, WebhookEvent
from messaging.models.messages import Message, Receipt

__all__ = ["Channel", "CronRun", "Lane", "Message", "Receipt", "Stream", "WebhookEvent"]
