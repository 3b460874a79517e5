from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class MessagingConfig(AppConfig):
    name = "messaging"
    verbose_name = _("messages")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from messaging import checks  # noqa: F401 - registers itself
