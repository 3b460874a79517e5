"""WAHA's HTTP interface."""
