"""The address that `make run` prints leads somewhere."""

from __future__ import annotations

import pytest
from django.test import Client


@pytest.mark.django_db
def test_the_root_leads_to_the_console(client: Client) -> None:
    answer = client.get("/", follow=True)
    assert answer.redirect_chain[0] == ("/admin/", 302)
    assert answer.status_code == 200
    assert b"password" in answer.content
