"""docs/architecture.md names files and what is in them, and they are there."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
LINK = r"\[`([\w./]+)`\]\((\.\./[\w./]+\.py)\)"
NAMED = re.findall(rf"{LINK},\s+`(\w+)(?:\.(\w+))?`", PAGE.read_text())
LINKED = re.findall(LINK, PAGE.read_text())


def text_of(target: str) -> str:
    return (PAGE.parent / target).read_text()


@pytest.mark.parametrize(("name", "target"), LINKED, ids=[target for _, target in LINKED])
def test_a_link_shows_the_name_of_its_file(name: str, target: str) -> None:
    assert (PAGE.parent / target).is_file()
    assert Path(target).name in (Path(name).name, "__init__.py") or Path(target).stem == name


@pytest.mark.parametrize(("_", "target", "name", "member"), NAMED, ids=[each[2] + each[3] for each in NAMED])
def test_a_file_has_what_the_page_names(_: str, target: str, name: str, member: str) -> None:
    text = text_of(target)
    assert re.search(rf"^(?:async )?(?:class|def) {name}\b", text, re.MULTILINE)
    assert not member or re.search(rf"^    (?:async )?def {member}\b", text, re.MULTILINE)


def test_the_page_names_at_least_what_it_follows() -> None:
    assert len(NAMED) >= 20
