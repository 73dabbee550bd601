"""Ended forms of entries in the index: the past is found as it was, erased texts are gone, and forms are bounded."""

import json
import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from contract.test_index_entries import changed, published, retained
from contract.test_index_store import Village, in_a_village, village
from recallog import Event, Position
from recallog_projections.index.documents import COUNTS
from recallog_projections.index.store import damage
from recallog_schemas import codec
from recallog_schemas.models.long_term import limits as long_term_limits
from support.events import MOMENT, event, run
from support.indexing import catch_up
from support.random_entries import random_history

pytestmark = pytest.mark.models("long_term")

A = ("village", "baker")


async def forms(found: Village, entry: str) -> list[tuple[str, str, int, int | None]]:
    """Space, text, begin and end of the points of an entry, oldest first. The index must be as a fold makes it."""
    assert await found.differences() == []
    active = (await found.rows.pointer(0)).active
    assert active is not None
    assert await damage(found.rows, found.engine, active) == ""
    stored = [point.payload for point in (await found.points()).values()]
    of_entries = [payload for payload in stored if "entry" in payload]
    counted = (await found.rows.scan(active, COUNTS.name, limit=10)).items
    assert sum(COUNTS.decode(item.data).documents for item in counted) == len(of_entries)
    return sorted(
        (
            (payload["space"], Event.model_validate_json(payload["event"]).text, payload["since"], payload["until"])
            for payload in of_entries
            if payload["entry"] == entry
        ),
        key=lambda one: one[2],
    )


async def hits(found: Village, agent: str = "baker", **options: Any) -> Mapping[str, str]:
    """The ids and texts of the hits that the index has found."""
    view = await found.memory.recall("village", agent, "rye water wheat", top_k=50, **options)
    assert view.degraded is None
    return {hit.event.id: hit.text for hit in view.hits if hit.source == "index"}


def test_a_new_text_ends_the_old_form_which_the_past_finds(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        first = await found.memory.publish(retained("Rye needs water.", id="rye"))
        second = await found.memory.publish(changed("updated", entry="rye", text="Rye needs no water."))
        await catch_up(found.indexing)
        assert await forms(found, "rye") == [
            ("-village", "Rye needs water.", first.offset, second.offset),
            ("village", "Rye needs no water.", second.offset, None),
        ]
        assert await hits(found) == {"rye": "Rye needs no water."}
        assert await hits(found, as_of=first) == {"rye": "Rye needs water."}
        assert await hits(found, as_of=second) == {"rye": "Rye needs no water."}
        assert await hits(found, as_of=Position(0, first.offset - 1)) == {}

    in_a_village(tmp_path, work, events=[event(payload={"text": "Bread!"})])


def test_as_of_a_time_forms_are_those_of_then(tmp_path: Path) -> None:
    def at(event_: Event, minute: int) -> Event:
        return event_.model_copy(update={"at": datetime(2026, 3, 1, 12, minute, tzinfo=UTC)})

    async def work(found: Village) -> None:
        told = [
            at(retained("Rye needs water.", id="rye"), 1),
            at(changed("updated", entry="rye", text="Rye needs no water."), 5),
            at(changed("retracted", entry="rye"), 9),
        ]
        await published(found, *told)
        expected = {0: {}, 1: {"rye": "Rye needs water."}, 4: {"rye": "Rye needs water."}}
        expected |= {5: {"rye": "Rye needs no water."}, 8: {"rye": "Rye needs no water."}, 9: {}}
        for minute, texts in expected.items():
            assert await hits(found, as_of=f"2026-03-01T12:{minute:02}:00Z") == texts, minute

    in_a_village(tmp_path, work, events=[event(payload={"text": "Bread!"}, at=MOMENT)])


@pytest.mark.parametrize("kind", ["retracted", "archived"])
def test_an_ended_entry_is_found_as_of_before_and_not_at_present(tmp_path: Path, kind: str) -> None:
    async def work(found: Village) -> None:
        first = await found.memory.publish(retained("Rye needs water.", id="rye"))
        await published(found, changed(kind, entry="rye"))
        assert [one[0] for one in await forms(found, "rye")] == ["-village"]
        assert await hits(found) == {}
        assert await hits(found, as_of=first) == {"rye": "Rye needs water."}

    in_a_village(tmp_path, work, events=[event(payload={"text": "Bread!"})])


def test_a_new_owner_is_a_new_form_with_the_same_vectors(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        first = await found.memory.publish(retained("Rye needs water.", id="rye"))
        await catch_up(found.indexing)
        made = (await found.store()).counts.embedded
        await published(found, changed("transferred", entries=["rye"], to="miller"))
        assert (await found.store()).counts.embedded == made
        assert [one[0] for one in await forms(found, "rye")] == ["-village", "village"]
        old, new = (point for point in (await found.points()).values() if "entry" in point.payload)
        assert old.dense is not None
        assert new.dense is not None
        assert old.dense.tolist() == new.dense.tolist()
        assert (await hits(found), await hits(found, "miller")) == ({}, {"rye": "Rye needs water."})
        assert (await hits(found, as_of=first), await hits(found, "miller", as_of=first)) == (
            {"rye": "Rye needs water."}, {},
        )  # fmt: skip

    in_a_village(tmp_path, work, events=[event(payload={"text": "Bread!"})])


def test_a_pin_is_no_new_form(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        await published(found, retained("Rye needs water.", id="rye"))
        await published(found, changed("updated", entry="rye", priority="pinned", importance=1))
        assert [one[0] for one in await forms(found, "rye")] == ["village"]

    in_a_village(tmp_path, work)


@pytest.mark.parametrize("first", [[], [changed("retracted", entry="rye")]], ids=["live", "retracted"])
def test_an_erasure_deletes_all_forms(tmp_path: Path, first: list[Event]) -> None:
    async def work(found: Village) -> None:
        then = await found.memory.publish(retained("Rye needs water.", id="rye"))
        await published(found, changed("updated", entry="rye", text="Rye needs no water."), *first)
        await published(found, changed("erased", entries=["rye"], reason="asked to"))
        await published(found, event(payload={"text": "Good morning."}))
        assert await forms(found, "rye") == []
        assert await hits(found, as_of=then) == {}
        assert b"Rye needs" not in b"".join(str(point.payload).encode() for point in (await found.points()).values())

    in_a_village(tmp_path, work, events=[event(payload={"text": "Bread!"})])


def test_an_erasure_leaves_the_ended_forms_of_entries_that_are_retracted_with_it(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        await published(found, retained("Rye.", id="rye"), retained("So wheat.", id="wheat", sources=["rye"]))
        await published(found, changed("erased", entries=["rye"]))
        assert (await forms(found, "rye"), [one[0] for one in await forms(found, "wheat")]) == ([], ["-village"])

    in_a_village(tmp_path, work)


def test_the_oldest_forms_are_deleted_and_then_compared_by_words(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        first = await found.memory.publish(retained("Rye number 0.", id="rye"))
        for number in range(1, long_term_limits.ENTRY_FORMS_ENDED + 3):
            last = await found.memory.publish(changed("updated", entry="rye", text=f"Rye number {number}."))
            await catch_up(found.indexing)
        texts = [text for _, text, _, _ in await forms(found, "rye")]
        assert texts == [f"Rye number {number}." for number in range(2, long_term_limits.ENTRY_FORMS_ENDED + 3)]
        view = await found.memory.recall(*A, "rye", as_of=first)
        assert [(hit.text, hit.source) for hit in view.hits] == [("Rye number 0.", "views")]
        view = await found.memory.recall(*A, "rye", as_of=Position(0, last.offset - 1))
        assert [hit.source for hit in view.hits] == ["index"]

    in_a_village(tmp_path, work, events=[event(payload={"text": "Bread!"})])


# Random histories.


async def _answers(found: Village, **at: Any) -> list[Any]:
    """What recall answers to each agent, without what names the generation."""
    answers = []
    for agent in ("baker", "miller", "smith"):
        for question in ("Rye costs", "mill wait strategy"):
            view = await found.memory.recall("village", agent, question, top_k=20, **at)
            assert view.degraded is None
            answers.append(
                [
                    (
                        hit.event.id,
                        hit.text,
                        hit.event.agent,
                        hit.source,
                        round(hit.similarity or 0.0, 5),
                        round(hit.score, 5),
                    )
                    for hit in view.hits
                ]
            )
    return answers


def _history(seed: int, size: int) -> Sequence[Event]:
    """Distinct events of one space."""
    drawn = random_history(random.Random(seed), size)
    found = {each["id"]: each | {"space": "village"} for each in reversed(drawn)}
    return [codec.decode(json.dumps(each).encode()) for each in reversed(found.values())]


@pytest.mark.parametrize("seed", range(6))
def test_after_any_history_the_index_equals_a_fresh_fold_and_the_past_is_found_as_it_was(
    tmp_path: Path, seed: int
) -> None:
    erasing = bool(seed % 2)  # what is erased is absent from the past too
    events = [each for each in _history(seed, 60) if erasing or each.kind != "memory.erased"]
    rng = random.Random(seed)

    async def whole() -> None:
        async with village(tmp_path / "whole", events=(), indexed=False) as found:
            first = 0
            while first < len(events):  # commits end anywhere
                part = rng.randrange(1, 20)
                await found.memory.publish_many(list(events[first : first + part]))
                await catch_up(found.indexing)
                first += part
            await forms(found, "never")
            live = await found.points()
            assert (await found.memory.admin.rebuild(what="index")).ok
            assert {key: point.payload for key, point in (await found.points()).items()} == {
                key: point.payload for key, point in live.items()
            }
            for end in sorted(rng.sample(range(1, len(events)), 0 if erasing else 3)):
                async with village(tmp_path / f"until-{end}", events=events[:end]) as past:
                    assert await _answers(found, as_of=Position(0, end - 1)) == await _answers(past)

    run(whole())
