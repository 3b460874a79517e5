"""Unfold ships without catalogues: its words are named here, so that ours translate them.

Nothing reads this list but makemessages.
"""

from __future__ import annotations

from django.utils.translation import gettext_noop

WORDS = (
    gettext_noop("Add row"),
    gettext_noop("After you've created a user, you’ll be able to edit more user options."),
    gettext_noop("All applications"),
    gettext_noop("Apply Filters"),
    gettext_noop("Cancel"),
    gettext_noop("Dark"),
    gettext_noop("Date"),
    gettext_noop("Expand row"),
    gettext_noop("Forgotten your password or username?"),
    gettext_noop("General"),
    gettext_noop("Go back"),
    gettext_noop("Light"),
    gettext_noop("Loading more results..."),
    gettext_noop("More actions"),
    gettext_noop("Next"),
    gettext_noop("No data"),
    gettext_noop("No results found"),
    gettext_noop("No results matching your query"),
    gettext_noop("Previous"),
    gettext_noop("Reset filters"),
    gettext_noop("Return to site"),
    gettext_noop("Search apps and models..."),
    gettext_noop("Select action"),
    gettext_noop("Select all rows"),
    gettext_noop("Select record"),
    gettext_noop("Select value"),
    gettext_noop("Submit"),
    gettext_noop("System"),
    gettext_noop("This item will be deleted."),
    gettext_noop("This page yielded into no results. Create a new item or reset your filters."),
    gettext_noop("Toggle password visibility"),
    gettext_noop("Type to search"),
    gettext_noop("Welcome back to"),
    gettext_noop("You have been successfully logged out from the administration"),
    gettext_noop("%(full_result_count)s total"),
    gettext_noop(
        "Raw passwords are not stored, so there is no way to see this user’s password, but you can change the"
        ' password using <a href="{}" class="text-primary-600 dark:text-primary-500">this form</a>.'
    ),
)
