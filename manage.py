#!/usr/bin/env python
"""Django's command line, with embedded services for commands that need them and were given none."""

import os
import sys

from broadcast_project.embedded import EmbeddedError, available

# What reads or writes files only. Everything else may need the database.
_WITHOUT_SERVICES = {
    "check",
    "compilemessages",
    "demo",
    "diffsettings",
    "findstatic",
    "help",
    "makemessages",
    "phone_check",
    "startapp",
    "version",
}


def main() -> None:
    """Run a management command; embedded services live as long as it does unless they run already."""
    from django.core.management import execute_from_command_line

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "broadcast_project.settings")
    if _needs_services(sys.argv[1:]):
        with available():
            execute_from_command_line(sys.argv)
    else:
        execute_from_command_line(sys.argv)


def _needs_services(arguments: list[str]) -> bool:
    command = arguments[0] if arguments else "help"
    asks_for_help = not {"-h", "--help", "--version"}.isdisjoint(arguments)
    return command not in _WITHOUT_SERVICES and not asks_for_help


if __name__ == "__main__":
    try:
        main()
    except EmbeddedError as exc:
        sys.exit(f"manage.py: {exc}")
