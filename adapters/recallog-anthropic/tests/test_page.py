"""The page of the package is true: its program prints what the page says."""

from pathlib import Path

from memory_calls import use
from model_stub import Stub, message, text_block
from page import Page

PAGE = Page(__file__)


def test_the_program_of_the_page_prints_what_it_says(tmp_path: Path) -> None:
    note = use(1, command="create", path="/memories/ann.md", file_text="Ann is allergic to nuts.")
    with Stub(note, message(text_block("Noted."))).served() as url:
        assert PAGE.printed(tmp_path, ANTHROPIC_BASE_URL=url, ANTHROPIC_API_KEY="none") == PAGE.block("text")
