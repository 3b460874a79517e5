from django.apps import AppConfig


class ChannelsWahaConfig(AppConfig):
    name = "channels_waha"
    default_auto_field = "django.db.models.BigAutoField"
