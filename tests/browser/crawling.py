"""Follows every link of the console, breadth first."""

from collections import Counter
from collections.abc import Callable
from urllib.parse import parse_qsl, urlsplit

from browser.watching import THEMES, Watched

PAGES_MAX = 60
EACH_KIND = 2
"""Pages of one kind that are opened: those of the first agents and events are like those of all others."""


def crawl(
    watched: Watched,
    start: str = "/",
    check: Callable[[Watched, str], None] | None = None,
    *,
    looks: bool = True,
) -> list[str]:
    """Open the pages that can be reached from one; their addresses. Faults are noted in `watched`.

    `check` gets each page and its source. With `looks`, pages are also checked in a narrow window, and by the rules of
    accessibility in both themes.
    """
    waiting, known, kinds = [f"{watched.url}{start}"], {f"{watched.url}{start}"}, Counter[str]()
    opened: list[str] = []
    while waiting and len(opened) < PAGES_MAX:
        address = waiting.pop(0)
        kind = kind_of(address)
        if kinds[kind] >= EACH_KIND:
            continue
        kinds[kind] += 1
        if not (source := _open(watched, address)):
            continue
        opened.append(address)
        if check is not None:
            check(watched, source)
        if looks:
            watched.check_widths()
        if looks and kinds[kind] == 1:
            for theme in THEMES:
                watched.check_access(theme)
        for link in watched.links():
            if link not in known:
                known.add(link)
                waiting.append(link)
    return opened


def _open(watched: Watched, address: str) -> str:
    """Open a page; its source, or "" if it is not a page of the console."""
    response = watched.goto(address)
    if not response.headers.get("content-type", "").startswith("text/html"):
        return ""
    if response.status >= 400:
        watched.note(f"a link leads to {response.status}: {address}")
    return watched.page.content()


def kind_of(address: str) -> str:
    """What pages of one kind have in common: their path, and the names of their arguments, and of `show` its value."""
    parts = urlsplit(address)
    arguments = parse_qsl(parts.query)
    return f"{parts.path}?{'&'.join(sorted({value if name == 'show' else name for name, value in arguments}))}"
