"""Counters under row security: the organization leads the index, so a policy is a condition of it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("audience", "0002_merged_contacts"),
        ("broadcasts", "0003_counted_from_index"),
        ("messaging", "0005_counted_from_index"),
        ("permissions", "0005_review_threshold"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="recipient",
            name="recipients_by_state",
        ),
        migrations.AddIndex(
            model_name="recipient",
            index=models.Index(fields=["broadcast", "organization", "state", "channel"], name="recipients_by_state"),
        ),
    ]
