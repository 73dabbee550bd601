"""Makes the screenshots of the README: the console on the folder of the demo.

`make screenshots` writes `docs/images/console-*.png`. Make them again when the pages look different.
"""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from recallog.sync import Memory
from recallog_demo import village
from recallog_tools.browsing import launch, serve

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FOLDER = Path(__file__).parents[2] / "docs" / "images"
WIDTH = 1200


@dataclass(frozen=True, slots=True)
class Picture:
    """One page, as it is shown in a window."""

    name: str
    path: str
    arguments: Mapping[str, str]
    theme: str
    height: int


PICTURES = (
    Picture(
        "console-agent",
        "/console/agent",
        {"space": village.SPACE, "agent": village.ACCUSER, "at": "0:200"},
        "light",
        860,
    ),
    Picture(
        "console-why",
        "/console/why",
        {"space": village.SPACE, "agent": village.ACCUSER, "q": "Who took the chest?"},
        "dark",
        760,
    ),
)


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="recallog-screenshots-") as folder:
        with Memory.open(village.settings(Path(folder), "embedded")) as memory:
            memory.publish_many(village.recording())
            memory.catch_up_index()
        with launch() as browser, serve(Path(folder)) as url:
            for picture in PICTURES:
                print(_take(browser, url, picture))


def _take(browser: "Browser", url: str, picture: Picture) -> Path:
    """Take a picture; the file that it is written to."""
    path = FOLDER / f"{picture.name}.png"
    window = {"width": WIDTH, "height": picture.height}
    context = browser.new_context(viewport=window, color_scheme=picture.theme)
    page = context.new_page()
    page.goto(f"{url}{picture.path}?{urlencode(picture.arguments)}")
    page.screenshot(path=path)
    context.close()
    return path


if __name__ == "__main__":
    main()
