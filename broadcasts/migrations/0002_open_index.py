from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('audience', '0001_initial'),
        ('broadcasts', '0001_initial'),
        ('messaging', '0002_engine'),
        ('permissions', '0002_uuid7'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name='broadcast',
            name='broadcasts_live',
        ),
        migrations.AddIndex(
            model_name='broadcast',
            index=models.Index(condition=models.Q(('status__in', ['queued', 'sending', 'paused'])), fields=['status'], name='broadcasts_open'),
        ),
    ]
