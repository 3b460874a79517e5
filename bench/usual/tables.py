"""`python -m bench.usual.tables`: make the tables, where they are not there yet."""

from __future__ import annotations

import os

import django
from django.db import connection


def main() -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "bench.usual.settings"
    django.setup()
    from bench.usual.models import RawWebhook, Recipient

    known = connection.introspection.table_names()
    with connection.schema_editor() as editor:
        for model in (Recipient, RawWebhook):
            if model._meta.db_table not in known:
                editor.create_model(model)


if __name__ == "__main__":
    main()
