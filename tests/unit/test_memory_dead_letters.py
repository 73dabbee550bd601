"""Dead letters of a ledger without unique ids, as an operator sees them."""

import pytest

from recallog import Memory, Position
from recallog.extending import MemoryLedger, MemoryStore, assemble
from recallog_schemas import Event, codec
from recallog_schemas.views import DeadLetterDetail
from recallog_service.cli import rendering
from support.events import event, run


def detail_of(*events: Event, at: Position) -> DeadLetterDetail:
    """The dead letter at a position of a ledger that contains `events`."""

    async def work() -> DeadLetterDetail:
        ledger = MemoryLedger(unique_ids=False)
        async with Memory(assemble(ledger, lambda namespace: MemoryStore())) as memory:
            await memory.publish_many(events)
            return await memory.admin.dead_letter(at)

    return run(work())


FIRST = event(id="debt-1", turn=3, payload={"text": "nine sacks", "to": {"name": "miller"}})


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        ({"payload": {"text": "ten sacks", "to": {"name": "miller"}}}, "payload.text"),
        ({"payload": {"text": "nine sacks", "to": {"name": "smith"}}}, "payload.to.name"),
        ({"turn": 4}, "turn"),
    ],
)
def test_a_conflict_names_the_field_that_differs_and_the_event_that_has_the_id(
    changed: dict[str, object], path: str
) -> None:
    other = FIRST.model_copy(update=changed)
    shown = detail_of(event(id="e-0"), FIRST, event(id="e-2"), other, at=Position(0, 3))
    assert shown.letter.reason == "conflict"
    assert shown.first is not None
    assert (shown.first.position, shown.first.differs_in) == (Position(0, 1), path)
    assert shown.first.content == codec.encode(FIRST).decode()
    assert f"differs in {path} from the event that has its id, at 0:1:\n" in shown.format()


def test_the_command_shows_both_events_of_a_conflict(capsys: pytest.CaptureFixture[str]) -> None:
    other = FIRST.model_copy(update={"turn": 4})
    rendering.renderer(DeadLetterDetail)(detail_of(FIRST, other, at=Position(0, 1)))
    _, _, _, content, _, differs, first = capsys.readouterr().out.splitlines()
    assert content == f"  {codec.encode(other).decode()}"
    assert differs == "differs in turn from the event that has its id, at 0:0:"
    assert first == f"  {codec.encode(FIRST).decode()}"


def test_a_dead_letter_of_another_reason_names_no_other_event() -> None:
    async def work() -> DeadLetterDetail:
        ledger = MemoryLedger(unique_ids=False)
        async with Memory(assemble(ledger, lambda namespace: MemoryStore())) as memory:
            at = ledger.append_bytes(b"rubbish", "village")
            return await memory.admin.dead_letter(at)

    shown = run(work())
    assert (shown.letter.reason, shown.first) == ("unparsable", None)
    assert shown.format().endswith("\n  rubbish")
