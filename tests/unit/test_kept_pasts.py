"""Pasts that a process has folded are kept, and answer as new folds do."""

from pathlib import Path

import pytest

from recallog import Memory
from recallog.reading.pasts import Pasts
from recallog_schemas import limits
from support.events import event, numbered, run

pytestmark = pytest.mark.models("long_term")

EVENTS = 60


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PAST_STEP_RECORDS", 10)


async def texts(memory: Memory, as_of: str) -> list[str]:
    return [each.text for each in (await memory.episodic("village", "baker", window=500, as_of=as_of)).memories]


def pasts_of(memory: Memory) -> Pasts:
    return memory._access.router._pasts


@pytest.mark.usefixtures("small_steps")
def test_a_moment_is_the_same_whichever_moments_were_asked_before() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish_many(numbered(EVENTS))
            for offset in (57, 3, 30, 31, 29, 57, 0, 20, 19, 59):
                expected = [f"village {number}" for number in range(offset + 1)]
                assert await texts(memory, f"0:{offset}") == expected

    run(work())


@pytest.mark.usefixtures("small_steps")
def test_a_question_folds_one_step_at_most() -> None:
    async def work() -> list[int]:
        async with Memory.in_memory() as memory:
            await memory.publish_many(numbered(EVENTS))
            folded = list[int]()
            await texts(memory, "0:59")
            memory._access.router._progress = lambda done, until: folded.append(done)
            for offset in (45, 8, 33):
                await texts(memory, f"0:{offset}")
            return folded

    assert run(work()) == [46, 9, 34]


def test_two_questions_about_one_moment_need_one_fold() -> None:
    async def work() -> list[int]:
        async with Memory.in_memory() as memory:
            await memory.publish_many(numbered(EVENTS))
            await memory.episodic("village", "baker")  # the live views are up to date
            folded = list[int]()
            memory._access.router._progress = lambda done, until: folded.append(done)
            await texts(memory, "2030-01-01T00:00:00Z")
            await texts(memory, "2030-01-01T00:00:00Z")
            return folded

    assert run(work()) == [EVENTS]


def test_what_is_erased_after_a_past_was_kept_does_not_show_in_it() -> None:
    async def work() -> tuple[bool, bool]:
        async with Memory.in_memory() as memory:
            kept = await memory.long_term.retain("village", "baker", "Ann is ill.", entry_id="l-1")
            before = (await memory.long_term.get("village", "baker", "l-1", as_of=kept.position)).ok
            await memory.long_term.forget("village", "baker", ["l-1"])
            return before, (await memory.long_term.get("village", "baker", "l-1", as_of=kept.position)).ok

    assert run(work()) == (True, False)


def test_an_erasure_of_one_question_does_not_change_the_kept_past() -> None:
    async def work() -> bool:
        async with Memory.in_memory() as memory:
            await memory.long_term.retain("village", "baker", "Ann is ill.", entry_id="l-1")
            kept = await memory.long_term.retain("village", "baker", "Bread is dear.", entry_id="l-2")
            await memory.long_term.forget("village", "baker", ["l-1"])
            for _ in range(2):
                assert not (await memory.long_term.get("village", "baker", "l-1", as_of=kept.position)).ok
            return (await memory.long_term.get("village", "baker", "l-2", as_of=kept.position)).ok

    assert run(work())


def test_a_past_is_not_kept_when_keys_are_destroyed_that_it_was_folded_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECALLOG_SEAL", "subjects")

    async def work() -> tuple[list[str], list[str]]:
        async with Memory.open(tmp_path) as memory:
            await memory.publish(event(subject="ann", payload={"text": "Ann is ill."}))
            before = await texts(memory, "0:0")
            await memory.erase("village", subject="ann")
            return before, await texts(memory, "0:0")

    before, now = run(work())
    assert before == ["Ann is ill."]
    assert "Ann is ill." not in now


def test_pasts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PAST_ITEMS_MAX", 3_000)

    async def work() -> int:
        async with Memory.in_memory() as memory:
            await memory.publish_many(numbered(EVENTS))
            for offset in range(EVENTS):
                await texts(memory, f"0:{offset}")
            return sum(past.items for past in pasts_of(memory)._asked.values())

    assert 0 < run(work()) <= 3_000


def test_pasts_without_an_event_are_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PAST_ITEMS_MAX", 3_000)

    async def work() -> int:
        async with Memory.in_memory() as memory:
            await memory.publish(event())
            for number in range(40):
                await memory.episodic(f"unknown-{number}", "baker", as_of="0:0")
            return len(pasts_of(memory)._asked)

    assert 0 < run(work()) <= 12
