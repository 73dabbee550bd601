"""The page of an agent through time: a slider, the panels of one moment, and what differs between two."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from recallog import Memory
from recallog_service.console.pages.agent import _compare_lines
from support.console import BAKER, READER, Browser, key_in
from support.events import event, one_loop, run

pytestmark = pytest.mark.models("all")

AGENT = "/console/agent?space=village&agent=baker"
HOSTILE = "<script>alert(1)</script> {{7*7}} \x1b[31mred \u202egnp"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """On Monday the baker learns that the mill is intact, on Wednesday that it has burned down."""
    opened = Memory.open(tmp_path)
    with one_loop():
        run(
            opened.publish_many(
                [
                    event(id="e-0", payload={"text": "The mill stands."}, at="2026-03-02T08:00:00Z"),
                    event(id="e-1", agent="miller", payload={"text": "A secret."}, at="2026-03-02T09:00:00Z"),
                    event(id="e-2", payload={"text": "The mill burned down."}, at="2026-03-04T08:00:00Z"),
                    event(
                        id="b-1",
                        kind="agent.reflected",
                        payload={"belief": "Bread will be dear.", "based_on": ["e-2"]},
                        at="2026-03-04T09:00:00Z",
                    ),
                ]
            )
        )
        yield opened
        run(opened.close())


@pytest.fixture
def browser(memory: Memory, tmp_path: Path) -> Browser:
    return Browser(memory, tmp_path)


def panels(browser: Browser, path: str) -> str:
    """What the panels show: without the slider, whose ticks name later events too."""
    return browser.page(path).text.split("Prompt", 1)[1]


def titles(page: str) -> list[str]:
    return re.findall(r'<section class="panel">\s*<h2>([A-Z][a-z ]+)', page)


def test_the_page_has_the_panels_of_all_models(browser: Browser) -> None:
    shown = titles(browser.get(AGENT).text)
    assert shown[:2] == ["Prompt", "Window"]
    assert {"Beliefs", "Working memory", "Entries", "Tiers"} == set(shown[2:])


def test_the_sections_of_the_prompt_have_their_tokens(browser: Browser, memory: Memory) -> None:
    prompt = run(memory.context("village", "baker"))
    text = browser.page(AGENT).text
    for section in prompt.sections:
        assert section.heading in text
        assert f"{section.tokens:,} tokens" in text


def test_at_a_position_the_agent_knows_what_it_knew_then(browser: Browser) -> None:
    then = panels(browser, f"{AGENT}&at=1")
    assert "The mill stands." in then
    assert "burned down" not in then
    assert "Bread will be dear." not in then


@pytest.mark.parametrize("at", ["2026-03-03", "2026-03-03T10:00", "2026-03-03T10:00:00Z"])
def test_at_a_time_the_agent_knows_what_it_knew_then(browser: Browser, at: str) -> None:
    then = panels(browser, f"{AGENT}&at={at}")
    assert "The mill stands." in then
    assert "burned down" not in then


@pytest.mark.parametrize("at", ["3", "0:3", "999", "now"])
def test_the_last_position_and_everything_after_it_is_now(browser: Browser, at: str) -> None:
    assert "Bread will be dear." in browser.page(f"{AGENT}&at={at}").text


@pytest.mark.parametrize("at", ["yesterday", "0:1:2", "-1", "\x00"])
def test_what_is_not_a_moment_is_told(browser: Browser, at: str) -> None:
    answer = browser.client.build_request(
        "GET", "/console/agent", params={"space": "village", "agent": "baker", "at": at}
    )
    assert browser.get(str(answer.url)).status_code == 422


def test_the_slider_reloads_the_moment_alone(browser: Browser) -> None:
    part = browser.get(f"{AGENT}&at=1", hx_request="true").text
    assert "As of 0:1" in part
    assert "<html" not in part


def test_the_ticks_are_the_events_that_the_agent_may_see(browser: Browser) -> None:
    ticks = browser.page(f"{AGENT}&at=2").text
    assert "3 events around this moment" in str(browser.get(f"{AGENT}&at=2").text)
    assert "A secret." not in ticks


def test_the_events_before_and_after_are_one_click_away(browser: Browser) -> None:
    links = browser.page(f"{AGENT}&at=2").links
    assert f"{AGENT}&at=0%3A0" in links
    assert f"{AGENT}&at=0%3A3" in links


def test_two_moments_are_side_by_side_with_their_differences_in_words(browser: Browser) -> None:
    page = browser.page(f"{AGENT}&at=1&with=now")
    assert "only right: [turn 000" in page.text.replace("+ ", "")
    assert "The mill burned down." in page.text


@pytest.mark.parametrize("moments", ["at=1&with=now", "with=0:1", "at=0:3&with=0:1"])
def test_what_changed_is_listed_by_section_from_the_earlier_moment_to_the_later_one(
    browser: Browser, moments: str
) -> None:
    page = browser.page(f"{AGENT}&{moments}")
    assert "From 0:1 to 0:" in page.text
    changed = page.text[page.text.index("What changed") :]
    assert "window" in changed
    assert "+ after: " in " ".join(changed.split())
    assert any(link.startswith("/console/why?space=village&agent=baker&id=") for link in page.links)


def test_the_date_of_a_line_is_no_difference(browser: Browser) -> None:
    text = browser.page(f"{AGENT}&at=1&with=now").text
    assert "The mill stands." in text
    assert "only left: [turn 000" not in text.replace("\N{MINUS SIGN} ", "")


def test_the_field_of_the_time_has_the_time_of_the_moment(browser: Browser) -> None:
    assert 'value="2026-03-03T23:59:59"' in browser.get(f"{AGENT}&at=2026-03-03").text


def test_equal_moments_do_not_differ(browser: Browser) -> None:
    assert "only right" not in browser.page(f"{AGENT}&at=1&with=0:1").text


def test_what_agents_say_is_shown_as_text(browser: Browser, memory: Memory) -> None:
    run(memory.publish(event(id="evil", payload={"text": HOSTILE})))
    for path in (AGENT, f"{AGENT}&at=1&with=now"):
        text = browser.get(path).text
        assert "<script>alert" not in text
        assert "{{7*7}}" in text
        assert "\x1b" not in text
        assert "\u202e" not in text


def test_a_large_text_is_cut(browser: Browser, memory: Memory) -> None:
    run(memory.publish(event(id="large", payload={"text": "x" * 100_000})))
    assert len(browser.get(AGENT).text) < 60_000


def test_another_agent_does_not_exist_for_a_key_of_one(memory: Memory, tmp_path: Path) -> None:
    key, browser = key_in(tmp_path, BAKER), Browser(memory, tmp_path)
    browser.sign_in(key)
    assert browser.get(AGENT).status_code == 200
    assert browser.get("/console/agent?space=village&agent=miller").status_code == 404
    assert browser.get("/console/agent?space=village&agent=nobody").status_code == 404


def test_a_space_of_others_does_not_exist(memory: Memory, tmp_path: Path) -> None:
    key, browser = key_in(tmp_path, READER), Browser(memory, tmp_path)
    browser.sign_in(key)
    assert browser.get("/console/agent?space=castle&agent=king").status_code == 404


def test_many_equal_lines_are_compared_in_a_moment() -> None:
    began = time.process_time()
    found = list(_compare_lines(["equal"] * 1_500, ["equal", "other"] * 750))
    assert time.process_time() - began < 5  # with each line as a place to begin at, it takes half a minute
    assert sum(not each.is_equal for each in found) >= 750


def test_a_comparison_with_bytes_that_are_no_text_is_refused(browser: Browser) -> None:
    answer = browser.get(f"{AGENT}&with=%FF")
    assert (answer.status_code, "with: should be valid text" in answer.text) == (422, True)
