"""The page of the package is true: its program prints what the page says."""

from pathlib import Path

from page import Page

PAGE = Page(__file__)


def test_the_program_of_the_page_prints_what_it_says(tmp_path: Path) -> None:
    assert PAGE.printed(tmp_path, RECALLOG_INDEX="off") == PAGE.block("text")
