"""The page of a space: its timeline, filters, pages, what is new, hostile texts, and keys that see less."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recallog import Event, Memory
from recallog_service.console.rendering import CUT_CHARS
from support.console import BAKER, OPERATOR, READER, Browser, Page, key_in
from support.events import event, one_loop, run

pytestmark = pytest.mark.models("all")

SPACE = "/console/space?space=village"
HOSTILE = {
    "script": "<script>alert(1)</script>",
    "template": "{{ 7919 * 7907 }}{% raw %}",
    "attribute": '"><img src=x onerror=alert(1)>',
    "ansi": "\x1b[31mred\x1b[0m",
    "bidi": "user\u202egnp.exe",
    "markdown": "[click](javascript:alert(1)) **bold**",
    "long": "x" * 80_000,
}


def said(number: int, agent: str = "baker", **fields: Any) -> Event:
    return event(agent=agent, id=f"e-{number}", turn=number, payload={"text": f"Loaf {number}."}, **fields)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    opened = Memory.open(tmp_path)
    with one_loop():
        yield opened
        run(opened.close())


def browser_of(memory: Memory, home: Path, *events: Event) -> Browser:
    run(memory.publish_many(events))
    return Browser(memory, home)


def test_the_timeline_reads_from_the_oldest_to_the_newest(memory: Memory, tmp_path: Path) -> None:
    text = browser_of(memory, tmp_path, said(1), said(2, "miller")).page(SPACE).text
    assert text.index("Loaf 1.") < text.index("Loaf 2.")
    assert "recallog history village" in text


def test_events_show_whom_their_words_are_from_and_can_be_filtered_by_it(memory: Memory, tmp_path: Path) -> None:
    pasted = event("user.injected", agent="ann", id="pasted", payload={"text": "A page.", "trust": "import"})
    used = event("tool.used", id="used", payload={"tool": "browse", "result": "A result."})
    believed = event("agent.reflected", id="held", payload={"belief": "A doubt.", "trust": "import"})
    kept = event("memory.retained", id="kept", payload={"text": "A fact.", "metadata": {"trust": "tool"}})
    browser = browser_of(memory, tmp_path, said(1), pasted, used, believed, kept)
    run(memory.configure_space("village", trust={"beliefs": "import"}))
    page = browser.page(SPACE)
    marked = ("span", {"class": "tag warn"})
    assert page.tags.count(marked) == 4
    filtered = browser.page(f"{SPACE}&trust=tool").text
    assert "A result." in filtered
    assert "A page." not in filtered
    assert """--filter '{"trust": "tool"}'""" in filtered
    assert browser.page("/console/agent?space=village&agent=baker").tags.count(marked) >= 2
    assert "Source" in browser.page("/console/why?space=village&agent=baker&id=kept").text
    assert browser.page("/console/event?space=village&at=0:2").text.count("tool") >= 2


def test_events_have_the_class_that_the_space_says(memory: Memory, tmp_path: Path) -> None:
    """The page showed the class of the kind, so that a list of imports had no mark."""
    browser = browser_of(memory, tmp_path, said(1, "scraper", kind="world.observed"), said(2))
    run(memory.configure_space("village", trust={"agents": {"scraper": "import"}}))
    filtered = browser.page(f"{SPACE}&trust=import")
    assert ("Loaf 1." in filtered.text, "Loaf 2." in filtered.text) == (True, False)
    assert filtered.tags.count(("span", {"class": "tag warn"})) == 1
    assert "sourceimport" in "".join(browser.page("/console/event?space=village&at=0:0").text.split())
    assert "sourceagent" in "".join(browser.page("/console/event?space=village&at=0:1").text.split())
    browser.sign_in(key_in(tmp_path, BAKER))
    assert browser.page(SPACE).tags.count(("span", {"class": "tag warn"})) == 1
    line = "[turn 001][world.observed][scraper][import] «Loaf 1.»"
    assert run(memory.history("village")).items[0].line() == line
    assert run(memory.timeline("village", "baker")).items[0].line() == line


def test_older_events_are_a_link_away(memory: Memory, tmp_path: Path) -> None:
    browser = browser_of(memory, tmp_path, *(said(n) for n in range(120)))
    seen: list[str] = []
    path: str | None = SPACE
    while path:
        page = browser.page(path)
        seen = [line for line in page.text.splitlines() if line.strip().startswith("Loaf")] + seen
        path = next((each for each in page.links if "before=" in each), None)
        assert len(seen) <= 120
    assert len(seen) == 120
    assert [line.strip() for line in seen] == [f"Loaf {n}." for n in range(120)]


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("author=miller", {2}),
        ("kind=agent.thought", {3}),
        ("session=monday", {4}),
        ("containing=loaf%203", {3}),
        ("author=baker&kind=agent.spoke", {1, 4}),
    ],
)
def test_events_are_filtered(memory: Memory, tmp_path: Path, query: str, shown: set[int]) -> None:
    events = said(1), said(2, "miller"), said(3, kind="agent.thought"), said(4, session="monday")
    text = browser_of(memory, tmp_path, *events).page(f"{SPACE}&{query}").text
    assert {n for n in range(1, 5) if f"Loaf {n}." in text} == shown


def test_what_is_new_is_asked_for_from_where_the_page_ends(memory: Memory, tmp_path: Path) -> None:
    browser = browser_of(memory, tmp_path, said(1))
    poll = next(each["hx-get"] for _, each in browser.page(SPACE).tags if "hx-get" in each)
    assert browser.get(poll or "", HX_Request="true").status_code == 204
    run(memory.publish_many([said(2), said(3)]))
    part = browser.get(poll or "", HX_Request="true").text
    assert part.index("Loaf 2.") < part.index("Loaf 3.")
    assert "Loaf 1." not in part
    following = next(each["hx-get"] for _, each in Page(part).tags if "hx-get" in each)
    assert browser.get(following or "", HX_Request="true").status_code == 204


def test_what_is_new_keeps_the_filter(memory: Memory, tmp_path: Path) -> None:
    browser = browser_of(memory, tmp_path, said(1), said(2, "miller"))
    poll = next(each["hx-get"] for _, each in browser.page(f"{SPACE}&author=miller").tags if "hx-get" in each)
    run(memory.publish_many([said(3), said(4, "miller")]))
    part = browser.get(poll or "", HX_Request="true").text
    assert "Loaf 4." in part
    assert "Loaf 3." not in part


def test_an_older_page_does_not_grow(memory: Memory, tmp_path: Path) -> None:
    page = browser_of(memory, tmp_path, said(1), said(2)).page(f"{SPACE}&before=0:1")
    assert not [each for _, each in page.tags if "hx-get" in each]


def test_what_is_due_says_what_answers_it(memory: Memory, tmp_path: Path) -> None:
    configured = event("agent.configured", payload={"reflection_threshold": 1})
    browser = browser_of(memory, tmp_path, configured, said(1), said(2))
    assert "recallog react village" in browser.page(SPACE).text
    run(memory.react("village"))
    assert "Answered" in browser.page(SPACE).text


def test_the_page_says_which_kinds_all_agents_see(memory: Memory, tmp_path: Path) -> None:
    text = browser_of(memory, tmp_path, said(1, kind="world.observed"), said(2, kind="agent.thought")).page(SPACE).text
    shared, _, private = text[text.index("Who sees what") :].partition("private")
    assert "world.observed" in shared
    assert "agent.thought" in private


@pytest.mark.parametrize("what", sorted(HOSTILE))
def test_a_hostile_text_shows_as_text(memory: Memory, tmp_path: Path, what: str) -> None:
    text = HOSTILE[what]
    browser = browser_of(memory, tmp_path, event(id=text[:100], session=text[:100], payload={"text": text, text: text}))
    for path in (SPACE, "/", "/console/event?space=village&at=0:0", f"{SPACE}&containing=x"):
        answer = browser.get(path)  # which finds scripts and styles
        assert answer.status_code == 200
        assert not [each for each in Page(answer.text).tags if each[0] == "img" and each[1]["src"] == "x"]
        assert "\x1b" not in answer.text
        assert "\u202e" not in answer.text
    assert "62615533" not in Page(browser.get("/console/event?space=village&at=0:0").text).text or what != "template"


def test_a_long_text_is_cut_and_its_event_has_it_whole(memory: Memory, tmp_path: Path) -> None:
    text = "y" * 50_000
    browser = browser_of(memory, tmp_path, *(event(payload={"text": text}) for _ in range(20)))
    answer = browser.get(SPACE).text
    assert len(answer) < 20 * 2 * CUT_CHARS
    whole = next(each for each in Page(answer).links if each.startswith("/console/event"))
    assert text in browser.get(whole).text


@pytest.mark.parametrize("name", ["a" * 128, "Ünï/cödé", "دار", "a b?c=d&e#f", "100%"])
def test_spaces_and_agents_have_any_name(memory: Memory, tmp_path: Path, name: str) -> None:
    browser = browser_of(memory, tmp_path, event(space=name, agent=name))
    link = next(each for each in browser.page("/").links if each.startswith("/console/space?"))
    assert name in browser.page(link).text


# Keys


def signed_in(memory: Memory, home: Path, grant: Any) -> Browser:
    run(memory.publish_many([said(1), said(2, "miller"), said(3, "miller", kind="world.observed")]))
    browser = Browser(memory, home)
    browser.sign_in(key_in(home, grant))
    return browser


def test_a_reader_of_the_space_sees_all_of_it(memory: Memory, tmp_path: Path) -> None:
    text = signed_in(memory, tmp_path, READER).page(SPACE).text
    assert all(f"Loaf {n}." in text for n in (1, 2, 3))


def test_a_key_of_one_agent_sees_what_this_agent_sees(memory: Memory, tmp_path: Path) -> None:
    browser = signed_in(memory, tmp_path, BAKER)
    text = browser.page(SPACE).text
    assert "Loaf 3." in text
    assert "Loaf 2." not in text
    assert "recallog timeline village baker" in text
    poll = next(each["hx-get"] for _, each in browser.page(SPACE).tags if "hx-get" in each)
    run(memory.publish_many([said(4, "miller"), said(5, "miller", kind="world.observed")]))
    part = browser.get(poll or "", HX_Request="true").text
    assert "Loaf 5." in part
    assert "Loaf 4." not in part


def test_an_event_that_a_key_may_not_see_is_like_one_that_is_not_there(memory: Memory, tmp_path: Path) -> None:
    browser = signed_in(memory, tmp_path, BAKER)
    hidden, unknown, shown = (browser.get(f"/console/event?space=village&at=0:{n}") for n in (1, 99, 2))
    assert hidden.status_code == unknown.status_code == 404
    assert hidden.text == unknown.text
    assert "Loaf 3." in shown.text


def test_an_operator_of_all_spaces_sees_each(memory: Memory, tmp_path: Path) -> None:
    assert "Loaf 2." in signed_in(memory, tmp_path, OPERATOR).page(SPACE).text


@pytest.mark.parametrize("query", ["before=x", "before=9:9", "kind=", "start=0:0", "before=0:99999999999999999999"])
def test_a_wrong_argument_is_a_page_that_says_so(memory: Memory, tmp_path: Path, query: str) -> None:
    answer = browser_of(memory, tmp_path, said(1)).get(f"{SPACE}&{query}")
    assert answer.status_code in (200, 404, 422)


def test_of_an_event_without_a_text_the_page_shows_the_beginning(memory: Memory, tmp_path: Path) -> None:
    blocks = {f"block-{number}": "ä" * 50 for number in range(50)}
    browser = browser_of(memory, tmp_path, event(kind="x.noted", payload=blocks))
    text = browser.page(SPACE).text
    assert '{"block-0":"ää' in text
    assert "block-49" not in text
