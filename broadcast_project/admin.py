"""Periodic tasks in the console: read by super-admins. Their rows are written by migrations."""

from __future__ import annotations

from django.contrib import admin
from django_celery_beat.models import (
    ClockedSchedule,
    CrontabSchedule,
    IntervalSchedule,
    PeriodicTask,
    SolarSchedule,
)

from permissions.admin_base import InstallationAdmin

for model in (ClockedSchedule, CrontabSchedule, IntervalSchedule, PeriodicTask, SolarSchedule):
    admin.site.unregister(model)


@admin.register(PeriodicTask)
class PeriodicTaskAdmin(InstallationAdmin):
    list_display = ("name", "enabled", "interval", "last_run_at", "total_run_count")
    list_select_related = ("interval",)
    ordering = ("name",)
    fields = ("name", "task", "enabled", "interval", "last_run_at", "total_run_count")
    readonly_fields = fields
