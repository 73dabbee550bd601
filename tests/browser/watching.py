"""A page of a browser that notes what a person would not: errors, refused scripts, requests elsewhere, dialogs."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, Response

AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
NARROW, WIDE = {"width": 400, "height": 800}, {"width": 1280, "height": 900}
Theme = Literal["light", "dark"]
THEMES: tuple[Theme, ...] = ("light", "dark")
SECONDS = 30

_LINKS = """() => [...document.querySelectorAll("a[href]")]
  .map(each => new URL(each.getAttribute("href"), location).href)"""
"""Also of links in pictures, whose `href` is an object."""

_WIDER = """() => {
  const width = document.documentElement.clientWidth
  if (document.documentElement.scrollWidth <= width) return []
  const scrolls = (each) => each && each !== document.body && each !== document.documentElement &&
    (["auto", "scroll", "hidden", "clip"].includes(getComputedStyle(each).overflowX) || scrolls(each.parentElement))
  return [...document.body.querySelectorAll("*")].filter(each =>
    each.getBoundingClientRect().right > width + 1 && !scrolls(each.parentElement)
  ).slice(0, 5).map(each => each.outerHTML.slice(0, 120))
}"""
"""The first elements that are wider than the window, except those in a box that scrolls by itself."""

_SERIOUS = """async options => (await axe.run(document, {resultTypes: ["violations"], ...options})).violations
  .filter(each => ["serious", "critical"].includes(each.impact))
  .map(each => `${each.id}: ${each.nodes.slice(0, 3).map(node =>
    node.html.slice(0, 160) + " | " + node.any.map(check => check.message).join(" ")).join(" || ")}`)"""

_OF_COLOURS = {"runOnly": ["color-contrast", "link-in-text-block"]}
"""The rules whose result differs between themes."""


@dataclass
class Watched:
    """A page and the faults that were found in it. Each fault names the address of its page."""

    page: Page
    url: str
    """The address of the server."""
    faults: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.set_default_timeout(SECONDS * 1_000)
        self.page.on("console", lambda message: self._note_message(message.type, message.text))
        self.page.on("pageerror", lambda error: self.note(f"a script failed: {error}"))
        self.page.on("dialog", self._note_dialog)
        self.page.on("request", lambda request: self._note_request(request.url))
        self.page.on("response", self._note_response)

    def note(self, fault: str) -> None:
        self.faults.append(f"{urlsplit(self.page.url)._replace(scheme='', netloc='').geturl()}: {fault}")

    def check(self) -> None:
        """Fail if faults were noted."""
        assert not self.faults, "\n".join(self.faults)

    def goto(self, address: str) -> Response:
        """Open a page, given as a path or as a whole address, and wait until it is loaded."""
        response = self.page.goto(address if address.startswith("http") else f"{self.url}{address}")
        assert response is not None
        return response

    def links(self) -> list[str]:
        """The addresses of this server that the page links to."""
        found = self.page.evaluate(_LINKS)
        return [each.partition("#")[0] for each in found if each.startswith(f"{self.url}/")]

    def other_links(self) -> list[str]:
        """What else the page links to."""
        return [each for each in self.page.evaluate(_LINKS) if not each.startswith(f"{self.url}/")]

    def check_widths(self) -> None:
        """Note what makes a narrow window scroll sideways."""
        self.page.set_viewport_size(NARROW)
        wider = self.page.evaluate(_WIDER)
        scrolls = self.page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
        self.page.set_viewport_size(WIDE)
        if scrolls:
            self.note(f"scrolls sideways at {NARROW['width']} px: {wider}")

    def check_access(self, theme: Theme) -> None:
        """Note what makes the page hard to use without a mouse, without sight or with weak eyes."""
        self.page.emulate_media(color_scheme=theme)
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        for found in self.page.evaluate(_SERIOUS, {} if theme == THEMES[0] else _OF_COLOURS):
            self.note(f"in {theme}: {found}")

    def _note_message(self, kind: str, text: str) -> None:
        if kind in {"error", "warning"}:
            self.note(f"{kind} in the console of the browser: {text}")

    def _note_dialog(self, dialog: Any) -> None:
        self.note(f"a dialog was opened: {dialog.message}")
        dialog.dismiss()

    def _note_request(self, url: str) -> None:
        if not url.startswith((f"{self.url}/", "data:", "blob:")):
            self.note(f"a request to another host: {url}")

    def _note_response(self, response: Response) -> None:
        if response.status >= 500:
            self.note(f"{response.status} of {response.url}")


@contextmanager
def watch(browser: Browser, url: str, key: str | None = None, **options: Any) -> Iterator[Watched]:
    """A page of a new visitor, who signs in if there is a key."""
    context = browser.new_context(viewport=WIDE, reduced_motion="reduce", **options)
    try:
        watched = Watched(context.new_page(), url)
        if key is not None:
            sign_in(watched, key)
        yield watched
    finally:
        context.close()


def sign_in(watched: Watched, key: str) -> None:
    watched.goto("/console/sign-in")
    watched.page.get_by_label("Key").fill(key)
    watched.page.get_by_role("button", name="Sign in").click()
    watched.page.wait_for_url(lambda url: "/sign-in" not in url)
