"""What every endpoint of the HTTP API shares."""
