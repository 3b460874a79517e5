from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class MessagingConfig(AppConfig):
    name = "messaging"
    verbose_name = _("messages")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from django.db.models.signals import post_migrate

        from messaging import checks, functions  # noqa: F401 - checks registers itself

        post_migrate.connect(functions.on_migrated, sender=self, dispatch_uid="engine functions")
