from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ChannelsWahaConfig(AppConfig):
    name = "channels_waha"
    verbose_name = _("Numbers")
    default_auto_field = "django.db.models.BigAutoField"
