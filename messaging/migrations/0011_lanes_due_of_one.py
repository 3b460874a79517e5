"""So that a claim looks at each organization's first due lanes, not at all that are due."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("messaging", "0010_lanes_with_a_rate"),
        ("permissions", "0005_review_threshold"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="lane",
            index=models.Index(
                condition=models.Q(("busy_message__isnull", True), ("next_at__isnull", False)),
                fields=["organization", "next_at"],
                name="lanes_due_of_one",
            ),
        ),
    ]
