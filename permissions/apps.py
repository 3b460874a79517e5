from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class PermissionsConfig(AppConfig):
    name = "permissions"
    verbose_name = _("Team and access")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from django.db.models.signals import post_delete, post_save

        from permissions import standings
        from permissions.models import Membership, TeamMember, User

        for signal in (post_save, post_delete):
            for model in (Membership, TeamMember):
                signal.connect(standings.on_change, sender=model, dispatch_uid="standings")
            signal.connect(standings.on_user_change, sender=User, dispatch_uid="standings")
