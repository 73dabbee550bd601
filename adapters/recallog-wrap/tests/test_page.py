"""The page of the package is true: its program prints what the page says."""

from pathlib import Path

from model_stub import DONE, Stub, chunk, completion
from page import Page

PAGE = Page(__file__)


def test_the_program_of_the_page_prints_what_it_says(tmp_path: Path) -> None:
    stub = Stub(
        completion("I will remember that."),
        completion("You are welcome."),
        [chunk(role="assistant"), chunk(content="Yes, "), chunk(content="to nuts."), DONE],
    )
    with stub.served() as url:
        assert PAGE.printed(tmp_path, OPENAI_BASE_URL=f"{url}/v1", OPENAI_API_KEY="none") == PAGE.block("text")
    assert "I am allergic to nuts." in stub.asked[2]["messages"][0]["content"]
