"""Where batches and runs end, and which rows are loaded, makes no difference: it is as if records came one by one."""

import base64
import lzma
import random

import pytest

from golden.record import RECORDED, TOPIC
from recallog_projections.views import builtin
from recallog_schemas import codec, limits
from recallog_schemas.errors import InvalidEvent
from recallog_schemas.models.workspace import limits as workspace_limits
from support.events import event
from support.folding import finish, folded, ledger_at

pytestmark = pytest.mark.models("all")

VALUES = [base64.b64decode(line) for line in lzma.decompress((RECORDED / "0.1.0" / TOPIC).read_bytes()).split(b"\n")]
"""Events of every kind and model, and records that are not events."""
EVENTS = 400


MORE = [
    event("memory.accessed", id="read", space="tiers", payload={"counts": {"t-1": 2}, "hits": 1}),
    event("agent.reflected", id="insight", payload={"belief": "INSIGHT: Bread is dear.", "about": "bread"}),
    event("agent.reflected", id="foreign", payload={"belief": "Bread is cheap.", "about": "bread", "trust": "import"}),
    event(
        "dissent.recorded",
        id="early",
        payload={"consensus": "later", "type": "risk_warning", "content": "It burns.", "confidence": 0.5},
    ),
    event("memory.archived", id="away", agent="baker", space="tiers", payload={"entry": "t-2"}),
    event("memory.restored", id="back", agent="baker", space="tiers", payload={"entry": "t-2", "rule": 2}),
    event("memory.archived", id="away again", agent="baker", space="tiers", payload={"entry": "t-3"}),
    event("memory.tier_changed", id="up", space="tiers", payload={"entry": "t-3", "to": "fast", "rule": 2}),
    event("agent.configured", id="daily", payload={"daily": {"enabled": True}}),
    *(
        event(id=f"said-{n}", session="long", payload={"text": f"The {n}th loaf."})
        for n in range(workspace_limits.DAILY_MESSAGES)
    ),
    event("turn.ended", id="ended", session="long", payload={}),
]
"""What fills the tables that the recorded events do not fill."""


SEEDS_WITHOUT_ERASED = 6


def history(seed: int) -> list[bytes]:
    """Some of the recorded events in an order in which nobody would write them, some twice; of later seeds some are
    erased."""
    dice = random.Random(seed)
    chosen = dice.sample(VALUES, EVENTS) + [codec.encode(each) for each in MORE]
    if seed >= SEEDS_WITHOUT_ERASED:
        return [erased(value) if dice.random() < 0.2 else value for value in chosen]
    first, last = sorted(dice.sample(range(EVENTS), 2))
    if seed % 2:
        chosen.sort(key=lambda value: VALUES.index(value) if value in VALUES else EVENTS)  # as recorded, with gaps
    else:
        dice.shuffle(chosen)
    return [*chosen, *chosen[first:last]]


def erased(value: bytes) -> bytes:
    """What is left of an event; the same bytes for a record that is not an event."""
    try:
        return codec.encode(codec.decode(value).model_copy(update={"envelope": 2, "payload": {}}))
    except InvalidEvent:
        return value


def everything(values: list[bytes], batch_records: int, *, unique_ids: bool) -> dict[tuple[str, ...], object]:
    """All rows and log entries that a fold of `values` gives."""
    projector, generation = folded(ledger_at(values, unique_ids=unique_ids, batch_records=batch_records))
    found: dict[tuple[str, ...], object] = {}
    for table in projector.fold.tables:
        after = None
        while True:
            chunk = finish(projector.store.scan(generation, table.name, after=after, limit=limits.SCAN_ITEMS))
            found |= {(table.name, *item.row_key): item.data for item in chunk.items}
            if chunk.last:
                break
            after = chunk.items[-1].row_key
    return found


@pytest.mark.parametrize("seed", range(SEEDS_WITHOUT_ERASED + 4))
@pytest.mark.parametrize("unique_ids", [True, False], ids=["folder", "topic"])
def test_any_split_into_runs_gives_the_rows_of_one_record_a_time(
    seed: int, unique_ids: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = history(seed)
    expected = everything(values, 1, unique_ids=unique_ids)
    assert len(expected) > EVENTS
    for batch_records in (7, 10_000):
        assert everything(values, batch_records, unique_ids=unique_ids) == expected
    monkeypatch.setattr(limits, "CACHED_ROWS_MAX", 0)  # each batch has to load all rows that it reads
    for batch_records in (1, 3, 40):
        assert everything(values, batch_records, unique_ids=unique_ids) == expected
    monkeypatch.setattr(limits, "FOLD_PASSES_MAX", 0)  # all records one by one
    assert everything(values, 40, unique_ids=unique_ids) == expected


def test_the_histories_fill_every_table() -> None:
    values = [*VALUES, *(codec.encode(each) for each in MORE)]
    filled = {address[0] for seed in (0, 1) for address in everything(history(seed), 10_000, unique_ids=False)}
    filled |= {address[0] for address in everything(values, 10_000, unique_ids=False)}
    filled.add("clock.ahead")  # records without a time are never ahead, see test_clocks.py
    assert {table.name for projection in builtin.projections() for table in projection.tables} - filled == set()
