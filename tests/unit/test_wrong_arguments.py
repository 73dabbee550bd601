"""Wrong arguments of every operation and method of the facades: errors of our own that name the argument."""

import math
from collections.abc import Awaitable, Callable
from datetime import UTC, date, datetime, timedelta, timezone
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from recallog import Memory, Position
from recallog.composition import assemble
from recallog.operations import pipeline
from recallog.operations.facade import all_operations
from recallog.operations.operation import Operation
from recallog_projections.index.engines.server import ServerEngine
from recallog_projections.stores.memory import MemoryStore
from recallog_schemas import Event
from recallog_schemas.errors import (
    IndexUnavailable,
    InvalidInput,
    OutOfRange,
    RecallogError,
    Refused,
    SettingsError,
    StorageError,
)
from support.events import event, run
from support.partitioned import PartitionedLedger
from unit.test_memory_own_projections import LINES, WORDS, Words

OPERATIONS = all_operations(Memory)

NAIVE = datetime.fromisoformat("2026-01-01")
BEFORE_YEAR_1 = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))

ANYTHING: dict[str, Any] = {
    "an integer": 7, "a negative": -1, "zero": 0, "2**70": 2**70, "10**5000": 10**5000, "a float": 1.5,
    "NaN": math.nan, "infinity": math.inf, "true": True, "none": None, "empty": "", "blank": " ", "NUL": "\0",
    "a surrogate": "\ud800", "long": "x" * 100_000, "words": "no name!", "bytes": b"x", "no items": [], "a list": ["a"],
    "a list of none": [None], "a dict": {}, "a tuple": (1,), "a set": {"a"}, "an object": object(), "a class": Event,
    "a function": len, "a generator": (each for each in ()), "a date": date(2026, 1, 1), "a naive time": NAIVE,
    "a time": datetime(2026, 1, 1, tzinfo=UTC), "before year 1": BEFORE_YEAR_1,
    "a naive time as text": "2026-01-01T00:00:00", "a time as text": "2026-01-01T00:00:00Z",
    "a position": Position(0, 0), "another partition": Position(5, 0), "partition -1": Position(-1, 0),
    "offset -5": Position(0, -5), "offset 2**70": Position(0, 2**70), "offset 10**5000": Position(0, 10**5000),
    "a position of texts": Position("0", "0"), "a position of none": Position(None, None),  # type: ignore[arg-type]
    "a position of floats": Position(0.0, 1.0), "a position as text": "0:0",  # type: ignore[arg-type]
    "another partition as text": "5:0", "digits": "0:" + "9" * 30, "many digits": "9" * 5000,
    "Arabic digits": "\u0663:\u0664", "a position as dict": {"partition": 0, "offset": 0},
    "no position as dict": {"partition": "x", "offset": None}, "far away": {"partition": -1, "offset": 2**70},
    "fields of an event": {"space": "village"}, "a broken event": event().model_copy(update={"space": 7}),
}  # fmt: skip

GOOD: dict[str, Any] = {
    "space": "village", "agent": "baker", "query": "bread", "event_id": "e-0", "ids": ["e-0"], "position": "0:0",
    "event": {"space": "village", "agent": "baker", "kind": "agent.spoke", "payload": {"text": "x"}}, "events": [],
    "model": "minilm", "target": "memory://", "namespace": "notes", "key": "miller", "to": "smith", "value": "x",
    "label": "Goals", "content": "x", "session": "s-1", "text": "{}", "entry_id": "e", "entry_ids": ["e"],
    "action_type": "bake", "summary": "x", "question": "bread", "topic": "bread prices", "type": "risk_warning",
    "consensus_id": "e-0", "by": "e-1", "conclusion": "x", "confidence": 0.5, "participating": ["baker"],
    "agreeing": ["baker"], "markers": ["a word"], "units": 1.0, "tier": "slow",
    "messages": [{"role": "user", "content": "x"}], "entity": "Ann", "since": "0:0",
}  # fmt: skip
"""A value of each parameter that must be given."""

NO_ARGUMENT = ["bytes", "a set", "an object", "a class", "a function", "a generator", "a date", "a position of none"]
"""Values of ANYTHING that no parameter takes."""

TAKES_NUMBERS = frozenset({
    "window", "limit", "top_k", "entries_before", "entries_after", "budget_tokens", "turn", "partition",
    "min_similarity", "value", "content", "base", "cost", "score", "rounds", "confidence",
    "max_messages", "max_chars", "keep", "count", "workers", "throttle", "reward", "salience_top_k",
    "reflection_threshold", "units", "predicted", "actual", "min_entries", "minutes", "depth",
})  # fmt: skip


async def outcome(call: Callable[[], Awaitable[object]]) -> str:
    """ "answered", "refused", or what is wrong with the error."""
    try:
        await call()
    except RecallogError as error:
        # The name of a model that is not installed, or of an impossible folder, is not an argument of a wrong type. Nor
        # is what a rule of items refuses, or what needs an index.
        named = getattr(error, "path", "") or isinstance(
            error, IndexUnavailable | Refused | SettingsError | StorageError
        )
        return "refused" if named else f"no path: {error!r}"
    except Exception as error:  # noqa: BLE001  # whatever it is, it is not ours
        return f"raw: {error!r}"[:300]
    return "answered"


def arguments_of(operation: Operation) -> dict[str, Any]:
    return {name: GOOD[name] for name, each in operation.parameters.items() if each.default is each.empty}


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_wrong_argument_of_an_operation_is_an_error_that_names_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a text may name a folder
    operation = OPERATIONS[name]

    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish_many([event(id=f"e-{number}") for number in range(3)])
            method = attrgetter(name)(memory)
            for parameter in operation.parameters:
                for kind, value in ANYTHING.items():
                    given = arguments_of(operation) | {parameter: value}
                    in_python = await outcome(partial(method, **given))
                    through_a_door = await outcome(partial(pipeline.call, memory, operation, given))
                    what = f"{name}({parameter}={kind})"
                    assert {in_python, through_a_door} <= {"answered", "refused"}, (what, in_python, through_a_door)
                    no_number = kind == "an integer" and parameter not in TAKES_NUMBERS
                    if kind in NO_ARGUMENT or no_number:
                        assert in_python == "refused", what
            for callback in operation.callbacks:
                for kind, value in ANYTHING.items():
                    if value is not None and not callable(value):
                        given = arguments_of(operation) | {callback: value}
                        found = await outcome(partial(method, **given))
                        assert found == "refused", f"{name}({callback}={kind})"

    run(work())


def methods(memory: Memory, value: Any) -> dict[str, Callable[[], Awaitable[object]]]:
    """Calls of the methods that are not operations, each with one wrong argument."""

    async def read(*args: Any, **kwargs: Any) -> list[object]:
        return [batch async for batch in memory.admin.records(*args, **kwargs)]

    return {
        "catch_up(own)": partial(memory.catch_up, own=value),
        "catch_up(partition)": partial(memory.catch_up, partition=value),
        "catch_up_index(progress)": partial(memory.catch_up_index, value),
        "catch_up_index(partition)": partial(memory.catch_up_index, partition=value),
        "keep_reacting(space)": partial(memory.keep_reacting, value, on_error=7),  # type: ignore[arg-type]
        "row(table)": partial(memory.row, value, "village"),
        "row(space)": partial(memory.row, WORDS, value),
        "row(owner)": partial(memory.row, WORDS, "village", value),
        "row(key)": partial(memory.row, WORDS, "village", key=value),
        "row(after)": partial(memory.row, WORDS, "village", after=value),
        "log_entries(log)": partial(memory.log_entries, value, "village"),
        "log_entries(space)": partial(memory.log_entries, LINES, value),
        "log_entries(owner)": partial(memory.log_entries, LINES, "village", value),
        "log_entries(newest)": partial(memory.log_entries, LINES, "village", newest=value),
        "log_entries(after)": partial(memory.log_entries, LINES, "village", after=value),
        "partition_of(space)": partial(memory.admin.partition_of, value),
        "records(start)": partial(read, value),
        "records(space)": partial(read, space=value),
        "records(until)": partial(read, until=value),
        "records(start, until)": partial(read, Position(0, 0), until=value),
        "known_positions(events)": partial(memory.admin.known_positions, value),
        "known_positions(an event)": partial(memory.admin.known_positions, [value]),
    }


@pytest.mark.parametrize("kind", ANYTHING)
def test_a_wrong_argument_of_another_method_is_an_error_that_names_it(kind: str) -> None:
    async def work() -> None:
        async with Memory.in_memory(projections=[Words()]) as memory:
            await memory.publish(event())
            for what, call in methods(memory, ANYTHING[kind]).items():
                assert await outcome(call) in ("answered", "refused"), f"{what}: {await outcome(call)}"

    run(work())


@pytest.mark.parametrize("kind", ANYTHING)
def test_wrong_arguments_of_open_are_errors_that_name_them(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    value = ANYTHING[kind]

    async def opened(**given: Any) -> None:
        async with Memory.open(**given) as memory:
            await memory.spaces()

    async def in_memory() -> None:
        async with Memory.in_memory(projections=value) as memory:
            await memory.spaces()

    async def work() -> None:
        for call in (
            partial(opened, home=value),
            partial(opened, home=tmp_path, projections=value),
            in_memory,
        ):
            assert await outcome(call) in ("answered", "refused")
        if not callable(value) and value is not None:
            assert await outcome(partial(opened, home=tmp_path, progress=value)) == "refused"

    run(work())


def test_an_environment_variable_with_a_wrong_value_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECALLOG_LOCK_WAIT_SECONDS", "soon")
    with pytest.raises(SettingsError, match="RECALLOG_LOCK_WAIT_SECONDS: should be a valid number"):
        Memory.open()


@pytest.mark.parametrize(
    ("call", "path"),
    [
        (lambda memory: memory.episodic("village", 7), "agent"),
        (lambda memory: memory.episodic(["village"], "baker"), "space"),
        (lambda memory: memory.episodic("village", "baker", as_of=3), "as_of"),
        (lambda memory: memory.episodic("village", "baker", as_of="2026-03-01T12:00:00"), "as_of"),
        (lambda memory: memory.episodic("village", "baker", after=Position(-1, 0)), "after"),
        (lambda memory: memory.episodic("village"), "agent"),
        (lambda memory: memory.publish(None), "event"),
        (lambda memory: memory.publish_many([event(), 7]), "1"),
    ],
)
def test_an_invalid_argument_is_named(call: Callable[[Memory], Awaitable[object]], path: str) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            with pytest.raises(InvalidInput) as raised:
                await call(memory)
            assert raised.value.path == path

    run(work())


@pytest.mark.parametrize(
    ("arguments", "path"),
    [({"as_of": Position(5, 0)}, "as_of"), ({"after": Position(5, 0)}, "after"), ({"after": "0:9"}, "after")],
)
def test_a_position_that_is_not_there_is_named(arguments: dict[str, Any], path: str) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish(event())
            with pytest.raises(OutOfRange) as raised:
                await memory.episodic("village", "baker", **arguments)
            assert raised.value.path == path

    run(work())


def test_positions_of_another_partition_than_that_of_the_space_are_refused() -> None:
    async def work() -> None:
        components = assemble(PartitionedLedger(4), lambda namespace: MemoryStore())
        async with Memory(components) as memory:
            position = await memory.publish(event(space="village-1"))
            other = await memory.publish(event(space="village-2"))
            for path in ("after", "as_of", "before"):
                with pytest.raises(OutOfRange, match="lies in partition 1, not in 2") as raised:
                    await memory.timeline("village-1", "baker", **{path: other})
                assert raised.value.path == path
            with pytest.raises(OutOfRange, match="lie in partition 1, not in 2"):
                [batch async for batch in memory.admin.records(position, until=other)]

    run(work())


# A closed memory.


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_of_a_closed_memory_is_refused(name: str, tmp_path: Path) -> None:
    operation = OPERATIONS[name]

    async def work() -> None:
        used, unused, without_files = Memory.open(tmp_path), Memory.open(tmp_path), Memory.in_memory()
        await used.spaces()
        await without_files.spaces()
        method = attrgetter(name)(used)
        for memory in (used, unused, without_files):
            await memory.close()
            await memory.close()
            with pytest.raises(StorageError, match="the memory is closed; open it again"):
                await pipeline.call(memory, operation, arguments_of(operation))
        with pytest.raises(StorageError, match="the memory is closed; open it again"):
            await method(**arguments_of(operation))

    run(work())


def test_every_other_method_of_a_closed_memory_is_refused() -> None:
    async def entered(memory: Memory) -> None:
        async with memory:
            pass

    async def read(memory: Memory) -> None:
        [batch async for batch in memory.admin.records()]

    async def work() -> None:
        memory = Memory.in_memory(projections=[Words()])
        await memory.publish(event())
        await memory.react()
        await memory.close()
        calls: list[Callable[[], Awaitable[object]]] = [
            partial(entered, memory), partial(read, memory), memory.catch_up, memory.catch_up_index, memory.start_index,
            partial(memory.keep_reacting, None, lambda _: 1.0), partial(memory.row, WORDS, "village"),
            partial(memory.log_entries, LINES, "village"), memory.admin.ledger_ends,
            partial(memory.admin.partition_of, "village"), partial(memory.admin.known_positions, []),
        ]  # fmt: skip
        for call in calls:
            with pytest.raises(StorageError, match="the memory is closed; open it again"):
                await call()

    run(work())


# Settings.


@pytest.mark.parametrize("name", ["HOME", "LEDGER", "VIEWS", "INDEX", "EMBEDDER", "MODEL", "WORKER_HOST"])
def test_undecodable_bytes_in_the_environment_are_a_settings_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"RECALLOG_{name}", "\udcff")
    with pytest.raises(SettingsError, match=f"RECALLOG_{name}: is not valid text"):
        Memory.open()


@pytest.mark.parametrize("host", ["a b", "[", ":1", "a:99999", ""])
def test_a_host_of_qdrant_that_cannot_be_is_a_settings_error(host: str) -> None:
    with pytest.raises(SettingsError, match="not the address of a Qdrant server"):
        ServerEngine(f"http://{host}")


NO_POSITIONS = ["0:" + "9" * 5000, "9" * 20, "9999999999999:0", "\u0663:\u0664", "0:1:2", "-1", "", ":", "0x1"]


@pytest.mark.parametrize("text", NO_POSITIONS)
def test_a_text_that_is_no_position_is_out_of_range(text: str) -> None:
    with pytest.raises(OutOfRange, match="is not a position; write it as PARTITION:OFFSET"):
        Position.parse(text)
    assert Position.parse("41") == Position(0, 41)
    assert Position.parse("2147483647:9223372036854775807") == Position(2**31 - 1, 2**63 - 1)
