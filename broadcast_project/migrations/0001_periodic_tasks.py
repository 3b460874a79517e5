"""Beat's entries. An admin may change them afterwards; nothing overwrites his change."""

from django.conf import settings
from django.db import migrations

# A tick that waited behind an outage is not run late: the next one does its work.
EVERY_BEAT = {
    "sync-sessions": "channels_waha.tasks.sync_sessions",
    "recover-stuck-messages": "messaging.tasks.recover_stuck_messages",
    "webhook-replay": "messaging.tasks.webhook_replay",
}


def seed(apps, schema_editor):
    database = schema_editor.connection.alias
    interval = apps.get_model("django_celery_beat", "IntervalSchedule")
    task = apps.get_model("django_celery_beat", "PeriodicTask")
    beat, _ = interval.objects.using(database).get_or_create(every=settings.BEAT_SECONDS, period="seconds")
    day, _ = interval.objects.using(database).get_or_create(every=1, period="days")
    for name, path in EVERY_BEAT.items():
        task.objects.using(database).update_or_create(
            name=name,
            defaults={"task": path, "interval": beat, "expire_seconds": max(settings.BEAT_SECONDS - 1, 1)},
        )
    task.objects.using(database).update_or_create(
        name="retention",
        defaults={"task": "messaging.tasks.retention", "interval": day, "expire_seconds": 3600},
    )


class Migration(migrations.Migration):
    dependencies = [("django_celery_beat", "0019_alter_periodictasks_options")]

    operations = [migrations.RunPython(seed, migrations.RunPython.noop)]
