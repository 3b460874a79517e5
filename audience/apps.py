from django.apps import AppConfig


class AudienceConfig(AppConfig):
    name = "audience"
    default_auto_field = "django.db.models.BigAutoField"
