"""What an agent wants to keep of its working memory: which lines qualify, their order, and their parts."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from recallog import Event, Memory
from recallog.composition import assemble
from recallog_projections.models.long_term import migration
from recallog_projections.models.long_term import tables as entries
from recallog_projections.stores.memory import MemoryStore
from recallog_schemas.models.long_term import limits as long_term_limits
from recallog_streams.ledgers.memory import MemoryLedger
from support.events import event, recorded, run
from support.folding import finish
from support.waiting import until

pytestmark = pytest.mark.models("long_term")


@pytest.mark.parametrize(
    ("line", "type_"),
    [
        ("LESSON: a", "lesson"), ("strategy: b", "strategy"), ("Info:c", "info"), ("  INSIGHT:  d  ", "insight"),
        ("nOtE: e", "note"),
    ],
)  # fmt: skip
def test_a_line_with_a_prefix_and_something_behind_it_qualifies(line: str, type_: str) -> None:
    assert list(migration.texts_of("tip", line)) == [("tip", line.strip())]
    assert migration.type_of(line.strip()) == type_


@pytest.mark.parametrize(
    "line",
    [
        "", "noise", "LESSON", "LESSON:", "LESSON: \t", "LESSON a", "LESSON : a", "A LESSON: a", "LESSONS: a",
        "LE\u017fSON: a", "NOTE:\u00a0",
    ],
)  # fmt: skip
def test_other_lines_do_not(line: str) -> None:
    assert list(migration.texts_of("tip", line)) == []


@pytest.mark.parametrize("value", [None, True, 7, 1.5, [], {}, [None, 7]])
def test_only_strings_qualify(value: object) -> None:
    assert list(migration.texts_of("tip", value)) == []


def test_strings_at_any_depth_are_judged_line_by_line_in_the_order_of_their_paths() -> None:
    value: dict[str, Any] = {
        "b": ["noise", "NOTE: 3\nnoise\n  NOTE: 4\n"],
        "a": {"y": "NOTE: 2", "x": "NOTE: 1", "_z": ["NOTE: hidden"]},
        "_c": "NOTE: hidden",
        "c": [[{"d": "NOTE: 5"}]],
    }
    assert list(migration.texts_of("k", value)) == [
        ("k.a.x", "NOTE: 1"), ("k.a.y", "NOTE: 2"), ("k.b.1", "NOTE: 3"), ("k.b.1", "NOTE: 4"),
        ("k.c.0.0.d", "NOTE: 5"),
    ]  # fmt: skip
    assert list(migration.texts_of("_k", value)) == []


def test_a_long_path_is_cut() -> None:
    ((path, _),) = migration.texts_of("k", {"x" * 60_000: {"y" * 1_000: "NOTE: a"}})
    assert len(path) == long_term_limits.MIGRATED_PATH_CHARS_MAX


def test_of_equal_texts_the_first_remains() -> None:
    texts = [("a", "NOTE: 1"), ("b", "NOTE: 2"), ("c", "NOTE: 1")]
    assert migration.parts_of(texts) == [[("a", "NOTE: 1"), ("b", "NOTE: 2")]]
    assert migration.parts_of([]) == []


def test_the_texts_are_in_parts_of_200_and_of_128_kib() -> None:
    many = [("k", f"NOTE: {number}") for number in range(401)]
    assert [len(part) for part in migration.parts_of(many)] == [200, 200, 1]
    long = [("k", f"NOTE: {number}{'ä' * 30_000}") for number in range(5)]
    assert [len(part) for part in migration.parts_of(long)] == [2, 2, 1]
    assert [text for part in migration.parts_of(long) for text in part] == long


# Through the memory: a session ends, and a reactor answers.


def put(namespace: list[str], key: str, value: Any, agent: str = "a") -> Event:
    return event("item.put", agent=agent, space="s", payload={"namespace": namespace, "key": key, "value": value})


def ended(session: str | None = "x1", **fields: Any) -> Event:
    return event("session.ended", agent="a", space="s", session=session, turn=9, **{"payload": {}, **fields})


async def kept(memory: Memory, agent: str = "a") -> list[tuple[str, str, dict[str, Any]]]:
    """Text, type and metadata of the live entries of an agent, in the order of the ledger."""
    found = [entry async for entry in rows_of_entries(memory, agent)]
    return [(row.text, row.type, json.loads(row.metadata)) for row in found]


async def rows_of_entries(memory: Memory, agent: str) -> AsyncIterator[entries.EntryRow]:
    events = await recorded(memory)
    for offset, each in enumerate(events):
        row = await memory.row(entries.ROWS, "s", agent, entries.key_of(offset))
        if each.kind == "memory.retained" and row is not None:
            yield row


SCRATCHPAD = [
    put(["session", "x1"], "current_subgoal", "x"),
    put(["session", "x1"], "recent_insights", ["LESSON: a", "noise"]),
    put(["session", "x1"], "tip", "strategy: b"),
    put(["session", "x1"], "_p", "LESSON: c"),
]
MIGRATED = [
    ("LESSON: a", "lesson", {"migrated_from": "a_working_memory", "key": "recent_insights.0"}),
    ("strategy: b", "strategy", {"migrated_from": "a_working_memory", "key": "tip"}),
]


def test_the_end_of_a_session_keeps_what_its_scratchpad_marks_and_a_second_end_adds_nothing() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish_many([*SCRATCHPAD, ended(id="end")])
            (pending,) = await memory.pending("s")
            assert (pending.kind, pending.agent, pending.events) == ("migration.due", "a", 2)
            (reaction,) = await memory.react()
            assert (reaction.kind, reaction.text) == ("reaction.done", "2 events")
            assert await kept(memory) == MIGRATED
            assert [row async for row in rows_of_entries(memory, "b")] == []
            await memory.publish(ended())
            await memory.react()
            assert await kept(memory) == MIGRATED
            assert not await memory.pending()
            events = await memory.admin.ledger_ends()
            await memory.admin.rebuild()
            assert await memory.admin.ledger_ends() == events
            assert await kept(memory) == MIGRATED
            assert not await memory.react()
            assert (await memory.admin.verify()).ok

    run(work())


@pytest.mark.parametrize(
    ("kind", "payload", "left"),
    [
        ("memory.erased", {"entries": ["?"]}, []),
        ("memory.retracted", {"entry": "?"}, []),
        ("memory.archived", {"entry": "?"}, []),
        ("memory.transferred", {"entries": ["?"], "to": "b"}, []),
        ("memory.updated", {"entry": "?", "text": "Rye rests."}, ["Rye rests."]),
    ],
)
def test_what_was_forgotten_or_corrected_does_not_come_back_at_the_end_of_the_next_session(
    kind: str, payload: dict[str, Any], left: list[str]
) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish_many([put(["working"], "Notes", "LESSON: a"), ended(id="end")])
            await memory.react()
            (row,) = [row async for row in rows_of_entries(memory, "a")]
            named = json.loads(json.dumps(payload).replace("?", row.id))
            await memory.publish_many([event(kind, agent="a", space="s", payload=named), ended("x2")])
            for _ in range(2):
                assert not await memory.react()
                assert [text for text, _, _ in await kept(memory)] == left
                assert not await memory.pending()
                await memory.admin.rebuild()
            assert (await memory.admin.verify()).ok
            again = await memory.long_term.retain("s", "a", "LESSON: a", type="lesson")
            assert again.outcome == "stored"  # retaining it explicitly adds a new entry

    run(work())


def test_what_is_forgotten_before_the_answer_does_not_come_back_by_it() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish_many([put(["working"], "Notes", "LESSON: a"), ended()])
            lesson = await memory.long_term.retain("s", "a", "LESSON:  a", type="note")
            await memory.long_term.forget("s", "a", [str(lesson.id)])
            await memory.react()
            assert await kept(memory) == []
            stored = [row async for batch in memory.admin.records() for row in batch.records]
            assert any(b"/answer/" in data for _, data in stored)  # the answer is in the ledger, and refused

    run(work())


def test_with_every_event_delivered_twice_the_entries_are_the_same() -> None:
    async def work() -> None:
        ledger = MemoryLedger(unique_ids=False)
        async with Memory(assemble(ledger, lambda namespace: MemoryStore())) as memory:
            for each in [*SCRATCHPAD, ended(id="end")]:
                await memory.publish(each)
                await memory.publish(each)
            while await memory.react():
                pass
            answers = [data for data in ledger_bytes(ledger) if b"/answer" in data]
            for data in answers:
                ledger.append_bytes(data)
            assert await memory.react() is not None
            assert not await memory.pending()
            assert await kept(memory) == MIGRATED

    run(work())


def ledger_bytes(ledger: MemoryLedger) -> list[bytes]:
    (end,) = finish(ledger.ends())

    async def all_bytes() -> list[bytes]:
        return [data async for batch in ledger.read(0, 0, end) for _, data in batch.records]

    return finish(all_bytes())


def test_entries_of_a_migration_have_the_time_the_turn_and_the_session_of_its_end_and_cost_nothing() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            granted = event("memory.metered", agent="a", space="s", payload={"units": 1})
            end = ended(at=datetime(2023, 5, 1, tzinfo=UTC))
            await memory.publish_many([granted, *SCRATCHPAD, end])
            await memory.react()
            (first, second) = [row async for row in rows_of_entries(memory, "a")]
            assert (first.at, first.turn, first.session) == (second.at, 9, "x1")
            assert first.at == int(end.at.timestamp()) * 1_000_000
            account = await memory.row(entries.AGENTS, "s", "a")
            assert account is not None
            assert account.balance == 1

    run(work())


def test_working_memory_comes_first_and_other_sessions_stay() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish_many(
                [
                    put(["session", "x2"], "a", "NOTE: of another session"),
                    put(["session", "x1"], "a", "NOTE: 2"),
                    put(["working"], "Notes", "noise\nNOTE: 1\n"),
                    put(["working", "deeper"], "a", "NOTE: of no block"),
                    put(["working"], "b", "NOTE: of another agent", agent="b"),
                    ended(),
                ]
            )
            await memory.react()
            assert [text for text, _, _ in await kept(memory)] == ["NOTE: 1", "NOTE: 2"]
            assert await kept(memory, "b") == []

    run(work())


def test_a_session_without_a_name_ends_with_working_memory_alone_and_for_all_who_are_addressed() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish_many(
                [
                    put(["working"], "k", "NOTE: a's"), put(["working"], "k", "NOTE: b's", agent="b"),
                    put(["working"], "k", "NOTE: c's", agent="c"), ended(None, audience=["b", "a"]),
                ]
            )  # fmt: skip
            assert [(due.agent, due.kind) for due in await memory.pending()] == [
                ("a", "migration.due"), ("b", "migration.due"),
            ]  # fmt: skip
            assert len(await memory.react()) == 2
            found = [[text for text, _, _ in await kept(memory, agent)] for agent in "abc"]
            assert found == [["NOTE: a's"], ["NOTE: b's"], []]

    run(work())


def test_what_stood_there_when_the_session_ended_is_kept_whatever_changes_before_the_answer() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            tip = {"namespace": ["session", "x1"], "key": "tip"}
            deleted = event("item.deleted", agent="a", space="s", payload=tip)
            await memory.publish_many([*SCRATCHPAD, ended(), deleted])
            await memory.react()
            assert await kept(memory) == MIGRATED

    run(work())


def test_a_session_without_anything_to_keep_makes_nothing_due() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish_many([put(["session", "x1"], "k", "noise"), ended(), ended("x2")])
            assert not await memory.pending()
            assert not await memory.react()

    run(work())


def test_more_texts_than_a_row_holds_are_kept_by_several_triggers() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            texts = [f"NOTE: {number}" for number in range(450)]
            await memory.publish_many([put(["working"], "k", "\n".join(texts)), ended()])
            assert sorted(due.events for due in await memory.pending()) == [50, 200, 200]
            assert len(await memory.react()) == 3
            assert [text for text, _, _ in await kept(memory)] == texts

    run(work())


def test_an_open_memory_with_reactors_migrates_by_itself() -> None:
    async def work() -> None:
        async with Memory.in_memory(reactors=True) as memory:
            await memory.publish_many([*SCRATCHPAD, ended()])

            async def migrated() -> bool:
                return len(await kept(memory)) == 2

            await until(migrated, "the notes are kept")
            assert await kept(memory) == MIGRATED

    run(work())
