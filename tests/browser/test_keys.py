"""What a key shows in a real browser: its spaces and its agent, and nothing of others."""

import httpx
import pytest
from playwright.sync_api import Browser

from browser import worlds
from browser.crawling import crawl
from browser.served import AGENT, OPERATOR, READER, World, Worlds
from browser.watching import Watched, watch
from recallog_service.access import Grant

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


def test_pages_that_an_operator_sees_are_not_there_for_other_keys(browser: Browser, guarded: World) -> None:
    """An address that somebody guesses says as little as one of something that does not exist."""
    with watch(browser, guarded.url, guarded.make_key(OPERATOR)) as operator:
        addresses = crawl(operator, looks=False)
    with watch(browser, guarded.url, guarded.make_key(AGENT)) as agent:
        for address in addresses:
            agent.page.goto(address)
            if worlds.FORBIDDEN in agent.page.content().replace(worlds.FORBIDDEN, "", address.count(worlds.FORBIDDEN)):
                agent.note("shows what is forbidden")
        agent.check()


def test_without_a_key_every_page_leads_to_the_sign_in(browser: Browser, guarded: World) -> None:
    with watch(browser, guarded.url, guarded.make_key(OPERATOR)) as operator:
        addresses = crawl(operator, looks=False)
    answers = [httpx.get(address, headers={"Accept": "text/html"}) for address in addresses]
    assert [each.url for each in answers if each.status_code not in {303, 401} or "bread" in each.text] == []
