from django.apps import AppConfig


class BroadcastsConfig(AppConfig):
    name = "broadcasts"
    default_auto_field = "django.db.models.BigAutoField"
