"""Composition: settings, URLs, the Celery application, commands that need several rooms."""
