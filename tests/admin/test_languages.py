"""Every page reads in Portuguese and in English, and no text lacks its translation."""

from __future__ import annotations

import ast
import gettext
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tests.admin.conftest import Page, Tenant, registered, text_of
from tests.admin.test_isolation import name_of, rows_of

ROOT = Path(__file__).resolve().parents[2]
CATALOGUE = ROOT / "locale" / "pt_BR" / "LC_MESSAGES"
ROOMS = ("permissions", "events", "audience", "messaging", "channels_waha", "broadcasts", "broadcast_project")


@pytest.mark.django_db
@pytest.mark.parametrize(("language", "words"), [("pt-br", "Disparos"), ("en", "Broadcasts")])
def test_pages_render_in_both_languages(
    mine: Tenant, super_admin: Client, language: str, words: str, page: Page
) -> None:
    super_admin.post(reverse("set_language"), {"language": language, "next": "/admin/"})
    first = super_admin.get("/admin/")
    assert f'<html lang="{language}"' in text_of(first)
    assert words in text_of(first)
    for model, _page in registered():
        assert super_admin.get(reverse(name_of(model, "changelist"))).status_code == 200, model
        assert super_admin.get(reverse(name_of(model, "add"))).status_code in {200, 403}, model
        row: Any = model._default_manager.first()
        if row is not None:
            assert super_admin.get(page(row)).status_code == 200, model
            assert super_admin.get(page(row, "history")).status_code == 200, model


@pytest.mark.django_db
def test_portuguese_comes_first_and_the_sign_in_page_is_ours() -> None:
    shown = text_of(Client().get("/admin/", follow=True))

    assert '<html lang="pt-br"' in shown
    assert "http://" not in re.sub(r'xmlns="[^"]*"', "", shown)


def entries() -> Iterator[tuple[str, list[str], bool]]:
    """(msgid, its translations, fuzzy) of the catalogue's source; a parser of what msgmerge writes."""
    for block in (CATALOGUE / "django.po").read_text().split("\n\n"):
        fields: dict[str, str] = {}
        name = ""
        for line in block.splitlines():
            if match := re.match(r'(msgid|msgid_plural|msgstr(?:\[\d\])?) (".*")$', line):
                name = match[1]
                fields[name] = ast.literal_eval(match[2])
            elif line.startswith('"'):
                fields[name] += ast.literal_eval(line)
        if fields.get("msgid"):
            texts = [text for key, text in fields.items() if key.startswith("msgstr")]
            yield fields["msgid"], texts, bool(re.search(r"^#,.*fuzzy", block, re.M))


def test_every_text_has_a_translation_and_none_is_a_guess() -> None:
    found = list(entries())

    assert len(found) > 300
    assert [msgid for msgid, texts, fuzzy in found if fuzzy or not all(texts)] == []


def test_translations_keep_the_placeholders() -> None:
    placeholder = re.compile(r"%\(\w+\)[sd]|\{\}")
    for msgid, texts, _fuzzy in entries():
        for text in texts:
            assert set(placeholder.findall(text)) == set(placeholder.findall(msgid)), msgid


def test_the_compiled_catalogue_is_the_source() -> None:
    with (CATALOGUE / "django.mo").open("rb") as compiled:
        catalogue: dict[Any, str] = vars(gettext.GNUTranslations(compiled))["_catalog"]
    compiled_texts: dict[str, set[str]] = {}
    for key, text in catalogue.items():
        compiled_texts.setdefault(key[0] if isinstance(key, tuple) else key, set()).add(text)
    compiled_texts.pop("", None)

    assert {msgid: set(texts) for msgid, texts, _fuzzy in entries()} == compiled_texts


def test_every_text_of_the_code_is_in_the_catalogue() -> None:
    """``make messages`` collects them."""
    known = {msgid for msgid, _texts, _fuzzy in entries()}
    missing = {text for text in (*of_python(), *of_templates()) if text not in known}

    assert missing == set()


def of_python() -> Iterator[str]:
    names = {"_", "gettext", "gettext_lazy", "gettext_noop", "ngettext", "ngettext_lazy"}
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
                    argument = node.args[0] if node.args else None
                    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                        yield argument.value


def of_templates() -> Iterator[str]:
    for path in (ROOT / "templates").rglob("*.html"):
        yield from (match[2] for match in re.finditer(r"\{% trans(?:late)? (['\"])(.*?)\1", path.read_text()))


def test_times_are_written_as_people_write_them(mine: Tenant, boss: Client) -> None:
    seen = 0
    for model, _page in registered():
        for row in rows_of(model, mine):
            text = text_of(boss.get(reverse(name_of(model, "change"), args=[row.pk])))
            assert not re.search(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d", text), model
            seen += 1
    assert seen > 10
