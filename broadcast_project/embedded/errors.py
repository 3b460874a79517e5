"""What can go wrong with the embedded services, in words for the person at the terminal."""


class EmbeddedError(Exception):
    """The embedded services cannot do what was asked. The message says what to do."""


class AlreadyRunningError(EmbeddedError):
    """Another process owns these services now."""
