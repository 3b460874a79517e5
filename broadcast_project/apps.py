from django.apps import AppConfig


class BroadcastProjectConfig(AppConfig):
    name = "broadcast_project"

    def ready(self) -> None:
        # Shared tasks find their broker through the application that is imported first.
        from broadcast_project.celery import app

        app.set_default()
