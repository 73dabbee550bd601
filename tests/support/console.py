"""A browser without scripts: it keeps cookies, sends forms, and finds what a page must not have."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx

from recallog import Memory, Settings
from recallog_service.access import Access, Grant
from recallog_service.access.key_file import KeyFile
from recallog_service.access.keys import make
from recallog_service.console.app import endpoints
from recallog_service.http.app import Application
from support.events import run

ORIGIN = "http://127.0.0.1"
READER = {"spaces": ("village",), "agent": "*", "verbs": {"read"}}
BAKER = {"spaces": ("village",), "agent": "baker", "verbs": {"read", "publish"}}
OPERATOR = {"spaces": ("*",), "agent": "*", "verbs": {"read", "publish", "tail", "forget", "operate"}}


class Page(HTMLParser):
    """What a page has, as a browser would read it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = ""
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._hidden = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    @property
    def links(self) -> list[str]:
        return [attributes["href"] or "" for tag, attributes in self.tags if tag == "a" and "href" in attributes]

    @property
    def fields(self) -> dict[str, str]:
        """The fields of all forms that have a value."""
        return {
            attributes.get("name") or "": attributes.get("value") or ""
            for tag, attributes in self.tags
            if tag == "input" and attributes.get("value") is not None
        }

    def check(self) -> None:
        """Assert that the page has no inline script or style, and loads nothing from elsewhere."""
        for tag, attributes in self.tags:
            assert tag not in ("style", "iframe", "object", "embed", "base"), tag
            assert tag != "script" or attributes.get("src"), attributes
            for name, value in attributes.items():
                assert not re.match(r"style$|on|hx-on|hx-vals$", name), (tag, name)
                if name in ("src", "href", "action", "hx-get", "hx-post"):
                    assert re.match(r"/(?!/)|#|\?", value or ""), (tag, name, value)


class Browser:
    """A visitor of the console of a memory."""

    def __init__(self, memory: Memory, home: Path, base: str = ORIGIN, **options: Any) -> None:
        self.app = Application(memory, Access.of(Settings(home=home)), pages=endpoints, **options)
        self.client = httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url=base)
        self._origin = base

    def get(self, path: str, **headers: str) -> httpx.Response:
        """A page. Every one is checked, also those of errors."""
        answer = run(self.client.get(path, headers={name.replace("_", "-"): each for name, each in headers.items()}))
        if answer.headers.get("content-type", "").startswith("text/html"):
            assert answer.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self';")
            assert answer.headers["cache-control"] == "no-store"
            Page(answer.text).check()
        return answer

    def page(self, path: str) -> Page:
        answer = self.get(path)
        assert answer.status_code == 200, answer.text
        return Page(answer.text)

    def post(self, path: str, origin: str | None = None, **fields: str) -> httpx.Response:
        return run(self.client.post(path, data=fields, headers={"Origin": origin or self._origin}))

    def sign_in(self, key: str, following: str = "/") -> httpx.Response:
        return self.post("/console/sign-in", key=key, next=following)


def key_in(home: Path, grant: Any, **options: Any) -> str:
    """A new key of the memory in a folder."""
    key, stored = make("test", Grant(**grant), **options)
    run(KeyFile(home).put(stored))
    return key
