"""What people come to the console for: at most five clicks from the start page, and the answer is there."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, Locator, expect

from browser import worlds
from browser.served import Worlds
from browser.watching import Watched, watch

pytestmark = pytest.mark.models("all")

CLICKS_MAX = 5


@dataclass
class Person:
    """Somebody who begins at the start page, clicks and reads."""

    watched: Watched
    clicks: int = 0

    def click(self, place: Locator) -> None:
        self.clicks += 1
        place.click()

    def send(self, place: Locator, text: str) -> None:
        """Fill a field and press Enter, which counts as a click."""
        self.clicks += 1
        place.fill(text)
        place.press("Enter")

    def link(self, name: str) -> Locator:
        return self.watched.page.get_by_role("link", name=name).first

    def main(self) -> Locator:
        return self.watched.page.get_by_role("main")

    def reads(self, *texts: str) -> None:
        for text in texts:
            expect(self.main()).to_contain_text(text, use_inner_text=True)


@pytest.fixture
def person(browser: Browser, served: Worlds) -> Iterator[Person]:
    with watch(browser, served.world(worlds.story).url) as watched:
        watched.goto("/")
        found = Person(watched)
        yield found
        watched.check()
        assert found.clicks <= CLICKS_MAX


def test_why_an_agent_believes_something(person: Person) -> None:
    person.click(person.main().get_by_role("link", name="anna"))
    belief = person.main().get_by_role("listitem").filter(has_text=worlds.BELIEF)
    person.click(belief.get_by_role("link", name="Why").first)
    person.reads(worlds.BELIEF, *worlds.REASONS)


def test_who_contradicts_it(person: Person) -> None:
    person.click(person.main().get_by_role("link", name="anna"))
    person.send(person.watched.page.get_by_role("searchbox").first, "kettles on Fridays")
    person.reads(worlds.OBJECTION, "bert")


def test_what_an_agent_knew_last_tuesday(person: Person) -> None:
    person.click(person.main().get_by_role("link", name="anna"))
    person.watched.page.get_by_label("As of a time").fill("2026-03-03T20:00")
    person.click(person.watched.page.get_by_role("button", name="Go", exact=True).first)
    person.reads(worlds.ON_TUESDAY)
    expect(person.main()).not_to_contain_text(worlds.ON_WEDNESDAY, use_inner_text=True)


def test_what_tools_printed_in_a_space(person: Person) -> None:
    person.click(person.main().get_by_role("link", name=worlds.STORY))
    person.watched.page.get_by_label("Source").select_option("tool")
    person.reads(worlds.PRINTED)
    expect(person.main()).not_to_contain_text(worlds.ON_WEDNESDAY, use_inner_text=True)
    printed = person.main().get_by_role("listitem").filter(has_text=worlds.PRINTED)
    expect(printed.locator(".tag.warn")).to_have_text("tool")


def test_the_cause_of_a_dead_letter(person: Person) -> None:
    person.click(person.link("1 dead letter"))
    person.click(person.main().get_by_role("link", name="0:").first)
    person.reads("unparsable", "The bytes are not an event.", "{not JSON")


def test_a_person_is_erased(person: Person) -> None:
    person.click(person.main().get_by_role("link", name=worlds.STORY))
    person.click(person.link("Erase a person"))
    person.send(person.watched.page.get_by_label("Person"), worlds.PERSON)
    person.reads("Would be erased", "memory.retained")
    person.click(person.main().get_by_role("button", name="Erase"))
    person.reads("Erased")
    person.watched.goto(f"/console/why?space={worlds.STORY}&agent=anna&q=oat+milk")
    expect(person.main()).not_to_contain_text("drinks oat milk", use_inner_text=True)
