"""The fold: every record is applied or becomes a dead letter, whatever a projection does."""

import asyncio
import gc
from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec
import pytest

from recallog_projections.rows import Rows
from recallog_projections.tables import Log, LogName, RowKey, Table
from recallog_projections.views import builtin
from recallog_schemas import Record, codec
from recallog_schemas.errors import InvariantViolation, ProjectionError
from recallog_streams import dead_letters
from recallog_streams.fold import Fold
from recallog_streams.ledgers.ledger import Batch
from support.events import event, numbered, run
from support.folding import dead_letter_offsets, finish, folded, ledger_at, rows_of


class Count(msgspec.Struct, frozen=True):
    value: int


COUNTS = Table("counts", Count)
SEEN = Log("counts.seen", Count)
STRANGE = Table("strange", Count)
IMPOSTOR = Table("activity.totals", Count)


class Counting:
    """Counts the events of each agent; a subclass misbehaves."""

    name: ClassVar[str] = "counting"
    version: ClassVar[int] = 1
    tables: ClassVar = (COUNTS, SEEN)

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        for record in run:
            space, agent = record.event.space, record.event.agent
            count = rows.get(COUNTS, space, agent) or Count(0)
            rows.put(COUNTS, Count(count.value + 1), space, agent)


def fold(projection: Any, *events: Any, batch_records: int = 1000) -> tuple[dict[tuple[str, str, str], int], list[str]]:
    """The counts, and what became a dead letter, when `projection` is folded with the built-in ones."""
    ledger = ledger_at([codec.encode(each) for each in events], batch_records=batch_records)
    projector, generation = folded(ledger, [projection, *builtin.projections()])
    counts = rows_of(projector.store, generation, COUNTS.name)
    letters = finish(dead_letters.all_dead_letters(projector.store, generation))
    return (
        {address: COUNTS.decode(data).value for address, data in counts.items()},
        [f"{letter.offset} {letter.reason}: {letter.detail}" for letter in letters],
    )


BAKER = ("village", "baker", "")


NEW_AGENTS = [event(agent=f"guest-{n}") for n in range(40)]
"""So many rows that are not there yet."""


def test_a_record_that_a_projection_raises_on_becomes_a_dead_letter_and_the_others_are_folded() -> None:
    class Raising(Counting):
        def apply(self, rows: Rows, run: Sequence[Record]) -> None:
            for record in run:
                super().apply(rows, [record])
                if record.event.turn == 2:
                    raise ValueError("two is too many")

    assert fold(Raising(), *numbered(4)) == (
        {BAKER: 3},
        ["2 projection_failed: counting: ValueError: two is too many"],
    )


def test_a_record_that_one_projection_raises_on_is_in_no_other_view_either() -> None:
    class Raising(Counting):
        def apply(self, rows: Rows, run: Sequence[Record]) -> None:
            for record in run:
                if record.event.turn == 1:
                    raise ValueError

    ledger = ledger_at([codec.encode(each) for each in numbered(3)])
    projector, generation = folded(ledger, [*builtin.projections(), Raising()])
    assert len(rows_of(projector.store, generation, "episodic.own")) == 2


def test_an_address_in_an_error_does_not_make_two_folds_differ() -> None:
    class Raising(Counting):
        def apply(self, rows: Rows, run: Sequence[Record]) -> None:
            raise ValueError(f"cannot count {object()!r}")

    assert fold(Raising(), *numbered(1))[1] == [
        "0 projection_failed: counting: ValueError: cannot count <object object at 0x…>"
    ]


@pytest.mark.parametrize("row", ["no row", None, Count("text"), Count(2**80), Count(object())])  # type: ignore[arg-type]
def test_a_row_that_cannot_be_stored_makes_its_record_a_dead_letter(row: object) -> None:
    class Nonsense(Counting):
        def apply(self, rows: Rows, run: Sequence[Record]) -> None:
            for record in run:
                if record.event.turn == 1:
                    rows.put(COUNTS, row, record.event.space, record.event.agent)  # type: ignore[type-var]
                else:
                    super().apply(rows, [record])

    counts, letters = fold(Nonsense(), *numbered(3))
    assert counts == {BAKER: 2}
    assert [letter.split(": counting: ")[0] for letter in letters] == ["1 projection_failed"]


def test_a_row_that_cannot_be_stored_makes_its_record_a_dead_letter_even_if_the_same_batch_overwrites_it() -> None:
    class Nonsense(Counting):
        def apply(self, rows: Rows, run: Sequence[Record]) -> None:
            for record in run:
                rows.put(COUNTS, Count("x" if record.event.turn == 0 else 1), record.event.space, record.event.agent)  # type: ignore[arg-type]

    together, apart = (fold(Nonsense(), *numbered(2), batch_records=records) for records in (10, 1))
    assert together == apart
    assert len(together[1]) == 1


def test_writing_to_an_undeclared_table_makes_the_record_a_dead_letter() -> None:
    class Foreign(Counting):
        def apply(self, rows: Rows, run: Sequence[Record]) -> None:
            for record in run:
                rows.get(STRANGE, record.event.space)

    assert fold(Foreign(), *numbered(1))[1] == [
        "0 projection_failed: counting: ProjectionError: the table 'strange' does not belong to any of the projections"
    ]


NO_ADDRESSES = [
    ("village", None, ""),
    (None, "", ""),
    ("village", 5, ""),
    ("village", "", b"key"),
    ("village", "\ud800", ""),
]


@pytest.mark.parametrize("address", NO_ADDRESSES, ids=repr)
def test_a_row_with_an_invalid_address_makes_the_record_a_dead_letter(address: tuple[Any, Any, Any]) -> None:
    class Sessions(Counting):
        """The usual slip: rows by `event.session`, which may be None."""

        def apply(self, rows: Rows, run: Sequence[Record]) -> None:
            rows.put(COUNTS, rows.get(COUNTS, *address) or Count(1), *address)

    counts, letters = fold(Sessions(), *NEW_AGENTS)
    assert counts == {}
    assert len(letters) == 40
    assert "is not the address of a row" in letters[0]


@pytest.mark.parametrize(
    "address", [("village", None), (None, ""), ("village", ["a list"]), ("village", "\ud800")], ids=repr
)
def test_a_log_entry_with_an_invalid_address_makes_the_record_a_dead_letter(address: tuple[Any, Any]) -> None:
    class Sessions(Counting):
        def apply(self, rows: Rows, run: Sequence[Record]) -> None:
            rows.append(SEEN, Count(1), *address)

    assert "is not the address of a log" in fold(Sessions(), event())[1][0]


def test_appending_to_a_table_makes_the_record_a_dead_letter() -> None:
    class Confused(Counting):
        def apply(self, rows: Rows, run: Sequence[Record]) -> None:
            rows.append(COUNTS, Count(1), "village")  # type: ignore[arg-type]

    assert "is a table, not a log" in fold(Confused(), event())[1][0]


def test_a_table_with_the_name_of_another_makes_the_record_a_dead_letter() -> None:
    class Impostor(Counting):
        def apply(self, rows: Rows, run: Sequence[Record]) -> None:
            rows.put(IMPOSTOR, Count(1), "")

    assert "'activity.totals' does not belong to any of the projections" in fold(Impostor(), event())[1][0]


def test_reading_rows_endlessly_makes_the_record_a_dead_letter() -> None:
    class Endless(Counting):
        def apply(self, rows: Rows, run: Sequence[Record]) -> None:
            number = 0
            while rows.get(COUNTS, "village", key=str(number)) is None:
                number += 1

    assert fold(Endless(), *numbered(1))[1] == ["0 projection_failed: reads rows without end"]


def test_a_projection_that_catches_every_exception_does_not_swallow_a_missing_row() -> None:
    class Careless(Counting):
        def apply(self, rows: Rows, run: Sequence[Record]) -> None:
            for record in run:
                try:
                    super().apply(rows, [record])
                except Exception:  # noqa: BLE001 - the subject of this test
                    rows.put(COUNTS, Count(-1), record.event.space, record.event.agent)

    assert fold(Careless(), *numbered(3)) == ({BAKER: 3}, [])


def test_a_violated_invariant_is_no_dead_letter() -> None:
    class Impossible(Counting):
        def apply(self, rows: Rows, run: Sequence[Record]) -> None:
            raise InvariantViolation("two and two are five")

    with pytest.raises(InvariantViolation):
        fold(Impossible(), *numbered(1))


def test_a_machine_out_of_memory_is_no_dead_letter() -> None:
    class Large(Counting):
        def apply(self, rows: Rows, run: Sequence[Record]) -> None:
            raise MemoryError

    with pytest.raises(MemoryError):
        fold(Large(), *numbered(1))


class Wordless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (Wordless(), "counting: Wordless: "),
        (ValueError("half \ud800 pair"), "counting: ValueError: half ? pair"),
        (ValueError("x" * 10_000), "counting: ValueError: " + "x" * 478),
        (KeyError("text"), "counting: KeyError: 'text'"),
    ],
    ids=["no words", "no text", "long", "short"],
)
def test_the_dead_letter_of_any_exception_can_be_stored(error: Exception, message: str) -> None:
    class Raising(Counting):
        def apply(self, rows: Rows, run: Sequence[Record]) -> None:
            raise error

    assert fold(Raising(), event())[1] == [f"0 projection_failed: {message}"]


OLD = (
    b'{"id":"a","run_id":"village","actor":"baker","kind":"agent.spoke","turn":1,"payload":{"text":"Bread!"},'
    b'"created_at":"2026-01-01T00:00:00Z"'
)
JSON_THAT_ONLY_SOME_READ = {
    "half a surrogate pair as a field": OLD + b',"\\ud800":1}',
    "half a surrogate pair as the session": OLD + b',"session_id":"\\ud800"}',
    "half a surrogate pair in UTF-8": OLD + b',"session_id":"\xed\xa0\x80"}',
    "a byte order mark": b"\xef\xbb\xbf" + OLD + b"}",
    "UTF-16": (OLD + b"}").decode().encode("utf-16"),
    "a number beyond all floats": OLD + b',"session_id":1e400}',
    "a field of 200,000 characters": OLD + b',"' + b"x" * 200_000 + b'":1}',
    "a field that is there twice": codec.encode(event())[:-1] + b',"session":1e400,"session":"morning"}',
    "a payload nested deep": codec.encode(event())[:-1] + b',"payload":{"a":' + b"[" * 5_000 + b"]" * 5_000 + b"}}",
}


@pytest.mark.parametrize("unique_ids", [True, False])
@pytest.mark.parametrize("data", JSON_THAT_ONLY_SOME_READ.values(), ids=JSON_THAT_ONLY_SOME_READ)
def test_json_that_only_some_parsers_accept_does_not_stop_the_stream(data: bytes, unique_ids: bool) -> None:
    ledger = ledger_at([data, *(codec.encode(each) for each in numbered(2)), data], unique_ids=unique_ids)
    projector, generation = folded(ledger)
    assert finish(projector.store.checkpoint(generation)).offset == 3  # type: ignore[union-attr]
    letters = finish(dead_letters.all_dead_letters(projector.store, generation))
    assert all(len(letter.detail) <= 500 for letter in letters)
    assert {0, 3} >= {letter.offset for letter in letters}


def test_two_projections_of_one_name_are_refused() -> None:
    with pytest.raises(ProjectionError, match="same name"):
        folded(ledger_at([]), [Counting(), Counting()])


def test_the_settings_before_an_event_apply_to_it() -> None:
    shares = event("run.started", agent="narrator", id="r", payload={"goal": "go", "shared_kinds": ["agent.spoke"]})
    ledger = ledger_at([codec.encode(each) for each in (shares, *numbered(2))])
    projector, generation = folded(ledger)
    shared = rows_of(projector.store, generation, "episodic.shared")
    assert len(shared) == 3  # run.started by the default kinds, agent.spoke by the setting


def test_a_projection_that_names_its_kinds_is_called_for_no_others() -> None:
    class Picky:
        name: ClassVar[str] = "picky"
        version: ClassVar[int] = 1
        kinds = frozenset({"agent.thought"})
        tables = ()

        def apply(self, rows: Rows, run: Sequence[Record]) -> None:
            raise ValueError("not this one")

    ledger = ledger_at([codec.encode(event(kind)) for kind in ("agent.spoke", "agent.thought", "shop.sold")])
    projector, generation = folded(ledger, [Picky(), *builtin.projections()])
    assert dead_letter_offsets(projector.store, generation) == [1]


def test_a_batch_is_freed_after_its_fold_without_garbage_collection() -> None:
    """An exception inside a store's client (such as a cancelled timeout) once kept whole batches alive in cycles."""
    fold = Fold(builtin.projections(), unique_ids=False)
    batch = Batch(0, 0, 50, [(offset, codec.encode(each)) for offset, each in enumerate(numbered(50))])

    async def fetch(needs: Sequence[RowKey], logs: Sequence[LogName]) -> tuple[Sequence[bytes | None], Sequence[int]]:
        try:
            raise KeyError
        except KeyError as error:
            kept: list[object] = [error]
            kept.append(kept)
        await asyncio.sleep(0)
        return [None] * len(needs), [0] * len(logs)

    def records() -> int:
        return sum(type(found) is Record for found in gc.get_objects())

    gc.collect()
    before = records()
    gc.disable()
    try:
        run(fold.process(fold.decode(batch), fold.new_rows(), fetch))
        assert records() == before
    finally:
        gc.enable()
