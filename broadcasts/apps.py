from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class BroadcastsConfig(AppConfig):
    name = "broadcasts"
    verbose_name = _("Sending")
    default_auto_field = "django.db.models.BigAutoField"
