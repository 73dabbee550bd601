"""The pages that say why: answers with their scores, an event or entry with its lineage, and what can be done."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recallog import Memory, Settings
from support.console import BAKER, OPERATOR, READER, Browser, key_in
from support.events import event, one_loop, run

pytestmark = pytest.mark.models("all")

WHY = "/console/why?space=village&agent=baker"
HOSTILE = "<script>alert(1)</script> {{7*7}} \x1b[31mred \u202egnp"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    opened = Memory.open(Settings(home=tmp_path, index="off", seal="subjects"))

    async def fill() -> None:
        await opened.publish_many(
            [
                event(id="e-0", payload={"text": "The miller owes nine sacks of flour."}, turn=1),
                event(id="e-1", payload={"text": "The river is high."}, turn=2, causation_id="e-0"),
                event(id="a-0", payload={"text": "Ann likes rye."}, turn=3, subject="ann"),
                event(id="b-1", kind="agent.reflected", payload={"belief": "The miller is poor.", "based_on": ["e-0"]}),
            ]
        )
        await opened.long_term.retain("village", "baker", "The miller owes sacks.", entry_id="l-1", based_on=["e-0"])
        await opened.long_term.retain("village", "baker", "He owes nine.", entry_id="l-2", based_on=["l-1"])

    with one_loop():
        run(fill())
        yield opened
        run(opened.close())


@pytest.fixture
def browser(memory: Memory, tmp_path: Path) -> Browser:
    return Browser(memory, tmp_path)


def signed_in(memory: Memory, home: Path, grant: Any) -> Browser:
    browser = Browser(memory, home)
    browser.sign_in(key_in(home, grant))
    return browser


# A question


def test_an_answer_has_its_score_in_parts(browser: Browser, memory: Memory) -> None:
    page = browser.page(f"{WHY}&q=sacks of flour")
    (best, *_) = run(memory.recall("village", "baker", "sacks of flour", top_k=20)).hits
    assert best.text in page.text
    assert f"{best.score:.3f}" in page.text
    for name, part in best.parts.items():
        assert (f"{name} {part:.3f}" in page.text) is bool(round(part, 3))


def test_what_is_near_and_not_shown_is_told_apart(browser: Browser, memory: Memory) -> None:
    found = run(memory.recall("village", "baker", "sacks of flour", top_k=20))
    assert ("Near, and not shown" in browser.page(f"{WHY}&q=sacks of flour").text) is any(
        hit.weak for hit in found.hits
    )


def test_a_question_without_an_agent_leads_to_the_agents(browser: Browser) -> None:
    assert f"{WHY}&q=flour" in [
        link.replace("q=flour&agent=baker", "agent=baker&q=flour")
        for link in browser.page("/console/why?space=village&q=flour").links
    ]


def test_a_key_of_one_agent_asks_for_that_agent(memory: Memory, tmp_path: Path) -> None:
    assert "nine sacks" in signed_in(memory, tmp_path, BAKER).page("/console/why?space=village&q=flour").text


def test_dissents_on_the_topic_say_who_contradicts(browser: Browser, memory: Memory) -> None:
    async def debate() -> None:
        await memory.consensus.record(
            "village", "baker", "flour price", "It rises.", confidence=0.9, participating=["baker", "miller"]
        )
        await memory.consensus.dissent(
            "village", "miller", "It falls.", topic="flour price", type="fundamental_disagreement", confidence=0.9
        )

    run(debate())
    text = browser.page(f"{WHY}&q=flour price").text
    assert "miller" in text
    assert "It falls." in text


# An event or entry


def test_an_event_says_whether_it_is_remembered_with_each_term(browser: Browser, memory: Memory) -> None:
    explained = run(memory.explain("village", "baker", "e-0"))
    page = browser.page(f"{WHY}&id=e-0")
    assert explained.why in page.text
    assert explained.memory is not None
    assert f"{explained.memory.score:.3f}" in page.text
    for term in ("relevance", "recency", "importance"):
        assert term in page.text


def test_an_event_has_what_it_was_made_from_and_what_was_made_from_it(browser: Browser) -> None:
    links = browser.page(f"{WHY}&id=e-0").links
    for product in ("e-1", "b-1", "l-1"):
        assert f"{WHY}&id={product}" in links
    assert f"{WHY}&id=e-0" in browser.page(f"{WHY}&id=b-1").links


def test_the_trees_of_an_event_have_all_steps(browser: Browser, memory: Memory) -> None:
    run(
        memory.publish(event(id="b-2", kind="agent.reflected", payload={"belief": "He will pay.", "based_on": ["b-1"]}))
    )
    first, last = browser.page(f"{WHY}&id=e-0"), browser.page(f"{WHY}&id=b-2")
    assert f"{WHY}&id=b-2" in first.links
    assert f"{WHY}&id=e-0" in last.links
    assert [attributes["class"] for tag, attributes in last.tags if tag == "li" and "level" in str(attributes)] == [
        "level1",
        "level2",
    ]
    assert "recallog lineage village baker b-2" in last.text


def test_the_whole_text_of_an_event_is_shown(browser: Browser, memory: Memory) -> None:
    run(memory.publish(event(id="large", payload={"text": "x" * 100_000})))
    assert "x" * 100_000 in browser.page(f"{WHY}&id=large").text


def test_an_event_that_the_agent_may_not_see_is_as_one_that_does_not_exist(memory: Memory, tmp_path: Path) -> None:
    run(memory.publish(event(id="secret", agent="miller", payload={"text": "Hush."})))
    browser = signed_in(memory, tmp_path, BAKER)
    hidden, missing = (browser.get(f"{WHY}&id={id_}").text.replace(id_, "ID") for id_ in ("secret", "nothing"))
    assert "Hush." not in hidden
    assert hidden == missing


def test_what_agents_say_is_shown_as_text(browser: Browser, memory: Memory) -> None:
    run(memory.publish(event(id="evil", payload={"text": HOSTILE})))
    for path in (f"{WHY}&id=evil", f"{WHY}&q=alert red"):
        text = browser.get(path).text
        assert "<script>alert" not in text
        assert "{{7*7}}" in text
        assert "\x1b" not in text
        assert "\u202e" not in text


# Actions


def test_an_entry_is_corrected(browser: Browser, memory: Memory) -> None:
    fields = {**browser.page(f"{WHY}&id=l-1").fields, "text": "The miller owes ten sacks."}
    wanted = {name: fields[name] for name in ("csrf", "text")}
    answer = browser.post("/console/entry/correct", **wanted, space="village", agent="baker", id="l-1")
    assert answer.status_code == 303
    page = browser.page(answer.headers["location"]).text
    assert "The miller owes ten sacks." in page
    assert "version 2" in page
    assert "updated" in page


def test_forgetting_shows_first_what_goes_with_it(browser: Browser, memory: Memory) -> None:
    page = browser.page("/console/entry/forget?space=village&agent=baker&id=l-1")
    assert "He owes nine." in page.text
    assert run(memory.long_term.get("village", "baker", "l-1")).ok
    answer = browser.post("/console/entry/forget", csrf=page.fields["csrf"], space="village", agent="baker", id="l-1")
    assert answer.status_code == 303
    assert not run(memory.long_term.get("village", "baker", "l-1")).ok


def test_erasing_a_person_shows_first_what_goes(browser: Browser, memory: Memory) -> None:
    page = browser.page("/console/erase?space=village&subject=ann")
    assert "Erase 1 event for ever" in page.text
    assert "Ann likes rye." in run(memory.episodic("village", "baker")).format()
    done = browser.post("/console/erase", csrf=page.fields["csrf"], space="village", subject="ann")
    assert done.status_code == 200
    assert "Erased: subject" in done.text
    assert "Ann likes rye." not in run(memory.episodic("village", "baker")).format()


def test_nothing_is_erased_without_a_token(browser: Browser, memory: Memory) -> None:
    assert browser.post("/console/erase", csrf="", space="village", subject="ann").status_code == 403
    assert "Ann likes rye." in run(memory.episodic("village", "baker")).format()


def test_who_may_not_forget_sees_no_way_to_do_it(memory: Memory, tmp_path: Path) -> None:
    browser = signed_in(memory, tmp_path, READER)
    page = browser.page(f"{WHY}&id=l-1")
    assert "Correct" not in page.text
    assert "Forget" not in page.text
    assert "Erase" not in page.text
    assert browser.get("/console/erase?space=village&subject=ann").status_code == 404
    token = page.fields["csrf"]
    assert browser.post("/console/erase", csrf=token, space="village", subject="ann").status_code == 404


def test_an_operator_sees_all_actions(memory: Memory, tmp_path: Path) -> None:
    text = signed_in(memory, tmp_path, OPERATOR).page(f"{WHY}&id=l-1").text
    for action in ("Correct", "Retract", "Forget", "Erase for ever"):
        assert action in text
