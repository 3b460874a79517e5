"""Room for updates in the engine's tables. Its functions are made after each migration (messaging.functions)."""

from django.db import migrations

# The tables live on updates of columns that no index holds: room in the page keeps them heap-only.
STORAGE = """
ALTER TABLE lanes SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01);
ALTER TABLE messages SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
ALTER TABLE receipts SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
"""


class Migration(migrations.Migration):
    dependencies = [("messaging", "0001_initial"), ("audience", "0001_initial")]

    operations = [migrations.RunSQL(STORAGE, migrations.RunSQL.noop)]
