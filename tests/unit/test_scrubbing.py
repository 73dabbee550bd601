"""Scrubbing: what is replaced before an event is stored, and what is not."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from recallog import Memory, Settings
from recallog.scrubbing import MARKS, Scrubber
from recallog_projections import notices
from recallog_schemas.errors import SettingsError
from support.events import event, one_loop, run
from support.http import Door
from support.scrubbed_texts import labelled

ADDRESS, PHONE = "alice@example.com", "+1 415 555 2671"


def scrubber(setting: str = ",".join(MARKS)) -> Scrubber:
    found = Scrubber.of(setting)
    assert found is not None
    return found


def test_of_a_labelled_set_nearly_everything_is_found_and_little_else() -> None:
    """Precision and recall of each sort: docs/privacy/scrubbing.md has the figures."""
    texts = labelled()
    assert len(texts) >= 300
    found, expected, right = Counter[str](), Counter[str](), Counter[str]()
    for each in texts:
        text, counts = scrubber().scrub(each.text)
        found.update(counts)
        for sort, value in each.values:
            expected[sort] += 1
            right[sort] += value not in text and MARKS[sort] in text
    shares = {sort: (right[sort] / found[sort], right[sort] / expected[sort]) for sort in MARKS}
    assert {sort: share for sort, share in shares.items() if min(share) < 0.95} == {}


def test_only_the_sorts_that_are_named_are_replaced() -> None:
    assert scrubber("emails").scrub(f"{ADDRESS} {PHONE}") == (f"[EMAIL] {PHONE}", {"emails": 1})
    assert scrubber("phones, emails").scrub(f"{ADDRESS} {PHONE}")[0] == "[EMAIL] [PHONE]"
    assert Scrubber.of("") is None


def test_an_unknown_sort_is_a_mistake_in_the_settings() -> None:
    with pytest.raises(SettingsError, match=r"RECALLOG_SCRUB: 'names' is not one of secrets, emails"):
        Settings.valid(scrub="emails,names")


def test_scrubbing_again_changes_nothing() -> None:
    for each in labelled():
        once, _ = scrubber().scrub(each.text)
        assert scrubber().scrub(once) == (once, {})


def test_all_strings_of_a_payload_are_scrubbed_but_the_names_of_fields_and_of_agents() -> None:
    arguments = {ADDRESS: [ADDRESS, {"to": PHONE}], "n": 4155552671}
    used, counts = scrubber().scrub_event(event("tool.used", payload={"tool": "mail", "arguments": arguments}))
    assert used.payload["arguments"] == {ADDRESS: ["[EMAIL]", {"to": "[PHONE]"}], "n": 4155552671}
    assert counts == {"emails": 1, "phones": 1}
    item = {"namespace": ["people"], "key": ADDRESS, "value": {"writes": ADDRESS}}
    put, _ = scrubber().scrub_event(event("item.put", agent=ADDRESS, payload=item))
    assert (put.agent, put.payload) == (ADDRESS, item | {"value": {"writes": "[EMAIL]"}})


def test_a_long_text_is_searched_in_little_time() -> None:
    for text in (
        "a" * 300_000,
        "1 " * 150_000,
        "a@" * 150_000,
        "0-" * 150_000,
        "token: " * 40_000,
        "a.b-" * 70_000,
        "-----BEGIN PRIVATE KEY-----\n" * 10_000,
    ):
        scrubber().scrub(text)


def scrubbing(home: Path, scrub: str) -> Memory:
    return Memory.open(Settings.valid(home=home, index="off", scrub=scrub))


def test_what_is_published_is_scrubbed_and_the_caller_is_told(tmp_path: Path) -> None:
    async def work() -> None:
        async with scrubbing(tmp_path, "emails") as memory:
            with notices.collect_notices() as told:
                await memory.publish(event(payload={"text": f"Write to {ADDRESS} and bob@example.com."}))
            assert told == ["replaced before it was stored: 2 e-mail addresses"]
            (shown,) = (await memory.episodic("village", "baker")).memories
            assert shown.text == "Write to [EMAIL] and [EMAIL]."

    run(work())


def test_nothing_is_replaced_by_default(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(Settings.valid(home=tmp_path, index="off")) as memory:
            await memory.publish(event(payload={"text": f"Write to {ADDRESS}."}))
            assert (await memory.episodic("village", "baker")).memories[0].text == f"Write to {ADDRESS}."

    run(work())


@pytest.mark.models("conversations")
def test_messages_that_are_added_again_are_known(tmp_path: Path) -> None:
    history: list[dict[str, Any]] = [
        {"role": "user", "content": f"I am {ADDRESS}."},
        {"role": "assistant", "content": "Hi."},
    ]

    async def work() -> None:
        async with scrubbing(tmp_path, "emails") as memory:
            with notices.collect_notices() as told:
                first = await memory.conversation.add("village", "baker", "monday", history)
            again = await memory.conversation.add("village", "baker", "monday", history)
            assert (first.added, again.added, again.known) == (2, 0, 2)
            assert told == ["replaced before it was stored: 1 e-mail address"]

    run(work())


def test_an_answer_over_http_says_how_much_was_replaced(tmp_path: Path) -> None:
    with one_loop():
        memory = scrubbing(tmp_path, "emails")
        door = Door(memory, Settings(home=tmp_path))
        said = {"agent": "baker", "kind": "agent.spoke", "payload": {"text": f"Write to {ADDRESS}."}}
        answer = door.post("/v1/spaces/village/events", said)
        assert answer.headers["Recallog-Warning"] == "replaced before it was stored: 1 e-mail address"
        assert run(memory.episodic("village", "baker")).memories[0].text == "Write to [EMAIL]."
        run(memory.close())
