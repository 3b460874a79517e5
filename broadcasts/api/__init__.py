"""Broadcasts over HTTP (contract: Broadcasts)."""
