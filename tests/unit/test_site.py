"""The documentation site: its pages, its links, and what programs read of it."""

from pathlib import Path

import pytest

from recallog_tools import site


@pytest.mark.parametrize(
    ("page", "link", "written"),
    [
        ("README.md", "docs/recall.md#query", "recall.md#query"),
        ("docs/recall/query.md", "../faq.md", "../faq.md"),
        ("docs/faq.md", "../README.md", "index.md"),
        ("docs/adr/README.md", "../../CONTRIBUTING.md#habits", "../repository/CONTRIBUTING.md#habits"),
        ("docs/faq.md", "../adapters/recallog-wrap", "repository/adapters/recallog-wrap/README.md"),
        ("docs/faq.md", "../memory/recallog/memory.py", "repository/memory/recallog/memory.py.txt"),
        ("CONTRIBUTING.md", "docs/images/a.svg", "../images/a.svg"),
        ("docs/faq.md", "https://example.org/a.md", "https://example.org/a.md"),
        ("docs/faq.md", "#here", "#here"),
    ],
)
def test_links_of_the_repository_lead_to_the_same_files_in_the_site(page: str, link: str, written: str) -> None:
    assert site.rewrite_links(page, f"See [it]({link}).") == f"See [it]({written})."


def test_links_in_blocks_of_code_are_not_changed() -> None:
    text = "```text\n[it](../README.md)\n```\n"
    assert site.rewrite_links("docs/faq.md", text) == text
    assert site.find_links("docs/faq.md", text) == set()


def test_places_in_the_site_name_their_files() -> None:
    for path in ("README.md", "docs/faq.md", "docs/adr/README.md", "CONTRIBUTING.md"):
        assert site.place_in_repository(site.place_in_site(path)) == path


def test_the_navigation_names_the_other_pages_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "reference").mkdir()
    for name in ("README", "b", "a"):
        (tmp_path / f"reference/{name}.md").touch()
    entries = ["start.md", {"Reference": ["reference/README.md", "reference/*.md"]}]
    expected = ["start.md", {"Reference": ["reference/README.md", "reference/a.md", "reference/b.md"]}]
    assert site.expand_navigation(entries, tmp_path) == expected


def test_a_folder_without_a_readme_is_shown_as_a_list_of_its_files() -> None:
    assert "- [recall.json](recall.json)" in site.read("schemas/json/operations/README.md")


def test_pages_beside_the_navigation_have_a_section_and_a_title() -> None:
    pages = dict(map(reversed, site.find_pages_beside_navigation()))
    assert pages["docs/adr/0001-folders-and-packages.md"] == "Decisions"
    assert pages["adapters/recallog-langgraph/README.md"] == pages["CONTRIBUTING.md"] == "Repository"
    assert site.find_title("CONTRIBUTING.md") == "Contributing"


def test_programs_find_all_pages_in_one_list_and_their_texts_in_one_file(tmp_path: Path) -> None:
    site.write_llms(tmp_path, "A memory.", [("Start", "Recallog", "index.md"), ("About", "FAQ", "faq.md")])
    listed = (tmp_path / "llms.txt").read_text()
    assert listed.startswith("# Recallog\n\n> A memory.\n")
    assert listed.endswith("## Start\n\n- [Recallog](index.md)\n\n## About\n\n- [FAQ](faq.md)\n")
    assert (tmp_path / "llms-full.txt").read_text().count("# Questions and answers") == 1
    assert (tmp_path / "faq.md").read_text().startswith("# Questions and answers")
