"""Counters under row security: the organization leads the index, so a policy is a condition of it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("audience", "0002_merged_contacts"),
        ("messaging", "0005_counted_from_index"),
        ("permissions", "0005_review_threshold"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="message",
            name="messages_by_stream",
        ),
        migrations.AddIndex(
            model_name="message",
            index=models.Index(fields=["stream", "organization", "status", "channel"], name="messages_by_stream"),
        ),
    ]
