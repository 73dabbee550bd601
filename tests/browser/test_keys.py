"""What a key shows in a real browser: its spaces and its agent, and nothing of others."""

from urllib.parse import urlencode

import httpx
import pytest
from playwright.sync_api import Browser

from browser import worlds
from browser.crawling import crawl
from browser.served import AGENT, OPERATOR, READER, World, Worlds
from browser.watching import Watched, watch
from recallog_service.access import Grant
from recallog_service.console.app import COOKIE, SIGN_IN

pytestmark = pytest.mark.models("all")


@pytest.fixture
def guarded(served: Worlds) -> World:
    """The memory of several tenants, whose server asks for a key."""
    return served.world(worlds.guarded)


@pytest.mark.parametrize(
    ("grant", "hidden"),
    [(READER, [worlds.FORBIDDEN]), (AGENT, [worlds.FORBIDDEN, worlds.HIDDEN]), (OPERATOR, [])],
    ids=["reader", "agent", "operator"],
)
def test_a_key_shows_pages_without_faults_and_nothing_of_others(
    browser: Browser, guarded: World, grant: Grant, hidden: list[str]
) -> None:
    def check(watched: Watched, source: str) -> None:
        for word in hidden:
            if word in source:
                watched.note(f"shows {word!r}: {source[source.index(word) - 80 :][:200]}")

    with watch(browser, guarded.url, guarded.make_key(grant)) as watched:
        assert crawl(watched, check=check)
        watched.check()


@pytest.fixture(scope="module")
def addresses(browser: Browser, served: Worlds) -> list[str]:
    """The addresses of pages that an operator reaches from a space that other keys may not see."""
    guarded = served.world(worlds.guarded)
    with watch(browser, guarded.url, guarded.make_key(OPERATOR)) as watched:
        found = crawl(watched, f"/console/space?{urlencode({'space': worlds.FORBIDDEN_SPACE})}", looks=False)
        watched.check()
    assert any(worlds.FORBIDDEN in each for each in found)
    return found


@pytest.mark.parametrize("grant", [READER, AGENT], ids=["reader", "agent"])
def test_a_page_of_a_forbidden_space_is_that_of_a_space_that_does_not_exist(
    guarded: World, addresses: list[str], grant: Grant
) -> None:
    cookies = {COOKIE: guarded.make_key(grant)}
    for address in filter(lambda each: worlds.FORBIDDEN in each, addresses):
        answers = [httpx.get(each, cookies=cookies) for each in (address, address.replace(worlds.FORBIDDEN, "quince"))]
        forbidden, unknown = [(each.status_code, each.text.replace(worlds.FORBIDDEN, "quince")) for each in answers]
        assert forbidden == unknown, address


def test_without_a_key_every_page_leads_to_the_sign_in(guarded: World, addresses: list[str]) -> None:
    answers = [httpx.get(each) for each in addresses]
    assert {(each.status_code, each.headers["location"].partition("?")[0]) for each in answers} == {(303, SIGN_IN)}
