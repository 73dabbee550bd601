"""Every page of the console in a real browser, on all sorts of folders: no faults, also where texts attack it."""

import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from browser import worlds
from browser.crawling import crawl
from browser.served import Worlds
from browser.watching import Watched, watch

pytestmark = pytest.mark.models("all")

Fill = Callable[[Path], Awaitable[None]]
RAW = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Characters that a page would obey instead of showing them."""


@pytest.mark.parametrize("fill", [worlds.of_demo, worlds.conversation, worlds.empty, worlds.hostile])
def test_every_page_is_without_faults(browser: Browser, served: Worlds, fill: Fill) -> None:
    with watch(browser, served.world(fill).url) as watched:
        assert crawl(watched)
        watched.check()


def test_hostile_texts_are_shown_and_not_obeyed(browser: Browser, served: Worlds) -> None:
    shown: list[str] = []

    def check(watched: Watched, _: str) -> None:
        text = watched.page.inner_text("body")
        shown.append(text)
        if watched.page.title() == "attacked":
            watched.note("a stored text changed the title")
        if raw := RAW.search(text):
            watched.note(f"U+{ord(raw[0]):04X} is shown as it is")
        if others := watched.other_links():
            watched.note(f"links to {others}")

    with watch(browser, served.world(worlds.hostile).url) as watched:
        crawl(watched, f"/console/space?space={worlds.SPACE}", check, looks=False)
        watched.check()
    together = "\n".join(shown)
    assert [name for name, text in worlds.SHOWN.items() if text not in together] == []
