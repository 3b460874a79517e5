from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class PermissionsConfig(AppConfig):
    name = "permissions"
    verbose_name = _("Team and access")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from django.db.models.signals import post_delete, post_migrate, post_save

        from permissions import row_security, standings
        from permissions.models import Membership, TeamMember, User

        for signal in (post_save, post_delete):
            for model in (Membership, TeamMember):
                signal.connect(standings.on_change, sender=model, dispatch_uid="standings")
            signal.connect(standings.on_user_change, sender=User, dispatch_uid="standings")
        post_migrate.connect(row_security.on_migrated, sender=self, dispatch_uid="row security")
