"""The page of the package is true: its program prints what the page says."""

from pathlib import Path

from model_stub import Stub, output, response
from page import Page

PAGE = Page(__file__)


def test_the_program_of_the_page_prints_what_it_says(tmp_path: Path) -> None:
    answers = (response(output(text)) for text in ("Hello Ann.", "You are Ann."))
    with Stub(*answers).served() as url:
        environment = {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "none", "OPENAI_AGENTS_DISABLE_TRACING": "1"}
        assert PAGE.printed(tmp_path, **environment) == PAGE.block("text")
