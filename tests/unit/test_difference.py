"""What an agent knows at one moment and did not at another, compared with memories that stopped at the moments."""

import random
from collections.abc import Mapping

import pytest
from pydantic import ValidationError

from recallog import Event, Memory, Position
from recallog_schemas.errors import InvalidArgument
from recallog_schemas.views import KnownChange, MemoryDifference
from support.campaigns import trials
from support.events import event, run
from support.random_entries import random_history
from support.random_events import random_event

pytestmark = pytest.mark.models("long_term", "beliefs", "working", "prompt", "tiers")

EVENTS, MOMENTS = 60, 4
Contents = Mapping[tuple[str, str], tuple[str, str]]
"""By section and id: text and state."""


def signs(found: MemoryDifference, section: str) -> list[str]:
    return [f"{each.change} {each.id}" for each in found.changes if each.section == section]


def change(found: MemoryDifference, id_: str) -> KnownChange:
    (only,) = [each for each in found.changes if each.id == id_ and each.section != "prompt"]
    return only


async def contents(memory: Memory, agent: str, ids: list[str]) -> Contents:
    """What the operations of a memory answer about an agent now, without the prompt."""
    found = {}
    for each in (await memory.episodic("village", agent)).memories:
        found["window", each.event.id] = each.text, ""
    for block in (await memory.working.get("village", agent)).blocks:
        found["blocks", block.label] = str(block.content), ""
    for belief in (await memory.beliefs("village", agent)).beliefs:
        found["beliefs", belief.event.id] = belief.text, ""
    for id_ in ids:
        entry = (await memory.long_term.get("village", agent, id_)).entry
        if entry is not None and entry.status == "live":
            superseded = entry.superseded_by and f"superseded by {entry.superseded_by}"
            state = ", ".join(part for part in (entry.tier, entry.priority, superseded) if part)
            found["entries", id_] = entry.text, state
    return found


async def prompt_lines(memory: Memory, agent: str) -> list[tuple[str, str]]:
    prompt = await memory.context("village", agent)
    return sorted(
        (section.heading, line)
        for section in prompt.sections
        for line in prompt.text[section.start : section.end].splitlines()
        if line and line != section.heading
    )


def expected(old: Contents, new: Contents) -> set[tuple[object, ...]]:
    left = {(section, id_, "left", old[section, id_][0], None) for section, id_ in old.keys() - new.keys()}
    entered = {(section, id_, "entered", None, new[section, id_][0]) for section, id_ in new.keys() - old.keys()}
    changed = {(*key, "changed", old[key][0], new[key][0]) for key in old.keys() & new.keys() if old[key] != new[key]}
    return left | entered | changed


def mixed_history(seed: int) -> list[Event]:
    """Events about entries and others, without those that erase: a past shows what is erased now as erased."""
    rng = random.Random(seed)
    drawn: dict[str, Event] = {}
    for number, fields in enumerate(random_history(rng, EVENTS)):
        try:
            of_entries = Event.model_validate(fields)
        except ValidationError:
            continue
        if of_entries.kind != "memory.erased":
            drawn.setdefault(of_entries.id, of_entries)
        drawn[f"o-{number}"] = random_event(rng, ["village"]).model_copy(update={"id": f"o-{number}"})
    return list(drawn.values())


@pytest.mark.parametrize("seed", range(trials(6, of=250)))
def test_the_difference_is_that_of_two_memories_which_stopped_at_the_moments(seed: int) -> None:
    history, rng = mixed_history(seed), random.Random(seed)
    ids = [each.id for each in history]
    agent = rng.choice(("baker", "miller"))

    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish_many(history)
            for _ in range(MOMENTS):
                since, until = sorted(rng.sample(range(len(history)), 2))
                async with Memory.in_memory() as earlier, Memory.in_memory() as later:
                    await earlier.publish_many(history[: since + 1])
                    await later.publish_many(history[: until + 1])
                    old, new = await contents(earlier, agent, ids), await contents(later, agent, ids)
                    old_lines, new_lines = await prompt_lines(earlier, agent), await prompt_lines(later, agent)
                found = await memory.diff("village", agent, Position(0, since), until=Position(0, until))
                assert found.since_checkpoint == Position(0, since)
                assert found.checkpoint == Position(0, until)
                told = [each for each in found.changes if each.section != "prompt"]
                assert {(each.section, each.id, each.change, each.before, each.after) for each in told} == expected(
                    old, new
                )
                assert len(told) == len(expected(old, new))
                for each in found.changes:
                    if each.section == "prompt":
                        lines, line = (old_lines, each.before) if each.change == "left" else (new_lines, each.after)
                        lines.remove((each.id, str(line)))
                assert old_lines == new_lines  # what did not change
                assert found.unchanged == len(old.keys() & new.keys()) - sum(
                    each.change == "changed" for each in told
                ) + len(old_lines)

    run(work())


def test_an_entry_that_left_says_why_and_one_that_changed_says_from_what() -> None:
    async def work() -> MemoryDifference:
        async with Memory.in_memory() as memory:
            for id_, text in (("l-1", "Ann lives in Rome."), ("l-2", "The oven is cold."), ("l-3", "Rye costs 3.")):
                await memory.long_term.retain("village", "baker", text, entry_id=id_)
            await memory.long_term.retain("village", "baker", "Ann lives in Oslo.", entry_id="l-4")
            await memory.long_term.archive("village", "baker", "l-2", reason="repaired")
            await memory.long_term.update("village", "baker", "l-3", text="Rye costs 4.")
            return await memory.diff("village", "baker", Position(0, 2))

    found = run(work())
    assert sorted(signs(found, "entries")) == ["changed l-1", "changed l-3", "entered l-4", "left l-2"]
    assert change(found, "l-1").state_after == "normal, superseded by l-4"
    assert change(found, "l-2").why == "archived: repaired"
    assert (change(found, "l-3").before, change(found, "l-3").after) == ("Rye costs 3.", "Rye costs 4.")


def test_what_is_erased_is_neither_told_as_left_nor_shown() -> None:
    async def work() -> MemoryDifference:
        async with Memory.in_memory() as memory:
            await memory.long_term.retain("village", "baker", "Ann owes the miller nine sacks.", entry_id="l-1")
            await memory.publish(event(id="e-9"))
            await memory.erase("village", entry="l-1")
            return await memory.diff("village", "baker", Position(0, 1))

    assert "nine sacks" not in run(work()).model_dump_json()


def test_events_leave_the_window_when_newer_ones_come() -> None:
    async def work() -> MemoryDifference:
        async with Memory.in_memory() as memory:
            await memory.configure_agent("village", "baker", window=2)
            await memory.publish_many([event(id=f"e-{number}", agent="baker", turn=number) for number in range(4)])
            return await memory.diff("village", "baker", Position(0, 2))

    found = run(work())
    assert signs(found, "window") == ["left e-0", "left e-1", "entered e-2", "entered e-3"]
    assert change(found, "e-0").why == "older than the window"
    assert "\n  - e-0: " in f"\n{found.format()}"


def test_moments_in_the_wrong_order_are_refused() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish_many([event(id=f"e-{number}") for number in range(4)])
            await memory.diff("village", "baker", Position(0, 3), until=Position(0, 1))

    with pytest.raises(InvalidArgument, match="until is before since: exchange them"):
        run(work())
