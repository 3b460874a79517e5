"""What the pages tell people to type is there: commands with their options, targets of make, links."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class

from bench.options import from_arguments
from chaos.options import from_arguments as chaos_from_arguments

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    page
    for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("simulator/*.md"), ROOT / ".env.example")
)
TEXTS = {str(page.relative_to(ROOT)): page.read_text() for page in PAGES}
# A code span, or a line of a block; a remark behind it is none of the command.
MANAGE = re.compile(r"manage\.py +(?P<name>[a-z_]+)(?P<arguments>[^`\n#]*)")
MAKE = re.compile(r"(?m)(?:`|^ *(?:\$ )?)make (?P<target>[a-z]+)(?P<arguments>[^`\n#]*)")
LINK = re.compile(r"\]\((?P<address>[^)#\s]+)")


def found(pattern: re.Pattern[str]) -> list[tuple[str, re.Match[str]]]:
    return [(page, match) for page, text in TEXTS.items() for match in pattern.finditer(text)]


def test_there_is_something_to_look_at() -> None:
    assert "README.md" in TEXTS
    assert len(found(MANAGE)) > 10
    assert len(found(MAKE)) > 10
    assert len(found(LINK)) > 10


@pytest.mark.parametrize(("page", "match"), [pytest.param(*one, id=f"{one[0]}: {one[1][0]}") for one in found(MANAGE)])
def test_a_command_takes_what_a_page_gives_it(page: str, match: re.Match[str]) -> None:
    name, arguments = match["name"], shlex.split(match["arguments"], comments=True)
    assert name in get_commands(), page
    command = load_command_class(get_commands()[name], name)
    parser = command.create_parser("manage.py", name)
    if "--help" not in arguments and arguments:
        parser.parse_args(arguments)


@pytest.mark.parametrize(("page", "match"), [pytest.param(*one, id=f"{one[0]}: {one[1][0]}") for one in found(MAKE)])
def test_make_knows_what_a_page_asks_of_it(page: str, match: re.Match[str]) -> None:
    targets = re.findall(r"(?m)^([a-z]+):", (ROOT / "Makefile").read_text())
    assert match["target"] in targets, page
    given = [part.removeprefix("ARGS=") for part in shlex.split(match["arguments"]) if part.startswith("ARGS=")]
    if match["target"] == "bench":
        from_arguments(shlex.split(" ".join(given)))
    if match["target"] == "chaos":
        chaos_from_arguments(shlex.split(" ".join(given)))


@pytest.mark.parametrize(("page", "match"), [pytest.param(*one, id=f"{one[0]}: {one[1][0]}") for one in found(LINK)])
def test_a_link_leads_somewhere(page: str, match: re.Match[str]) -> None:
    if "://" not in match["address"]:
        assert ((ROOT / page).parent / match["address"]).exists(), page
