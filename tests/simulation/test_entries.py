"""Random histories of entries, compared with an oracle: verdicts, rows, accounts and logs, wherever batches end."""

import json
import random
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallog_projections.models.long_term import tables
from recallog_projections.models.long_term.reading import event_of, may_read
from recallog_projections.stores.store import Generation
from recallog_projections.views import due
from recallog_streams import dead_letters
from recallog_streams.projector import Projector
from support.entries_checking import View, check_entries, check_tiers, check_uses
from support.entries_oracle import ExpectedEntries, expect
from support.events import MOMENT
from support.folding import all_rows, finish, folded, ledger_at, rows_of
from support.random_entries import AGENTS, Fields, random_history

pytestmark = pytest.mark.models("tiers")

SEEDS = st.integers(0, 2**32)
SIZES = st.integers(1, 120)
BATCHES = (1, 1_000)


def history(seed: int, size: int) -> list[Fields]:
    return random_history(random.Random(seed), size)


def values_of(events: list[Fields]) -> list[bytes]:
    return [json.dumps(event).encode() for event in events]


def check(projector: Projector, generation: Generation, expected: ExpectedEntries) -> None:
    """Assert that the view of entries equals the oracle's, and that only conflicts are dead letters."""
    reasons = {letter.reason for letter in finish(dead_letters.all_dead_letters(projector.store, generation))}
    assert reasons <= {"conflict"}
    check_entries(projector.store, generation, expected)
    check_uses(projector.store, generation, expected)
    check_tiers(projector.store, generation, expected)


@settings(max_examples=250)
@given(seed=SEEDS, size=SIZES)
def test_entries_equal_the_oracle_wherever_batches_end(seed: int, size: int) -> None:
    events = history(seed, size)
    expected = expect(events)
    folds = [folded(ledger_at(values_of(events), unique_ids=False, batch_records=records)) for records in BATCHES]
    for projector, generation in folds:
        check(projector, generation, expected)
    one, thousand = (all_rows(projector, generation) for projector, generation in folds)
    assert one == thousand


@settings(max_examples=100)
@given(seed=SEEDS, size=SIZES, minutes=st.integers(-1, 60))
def test_as_of_a_time_entries_equal_the_oracle_of_the_events_until_then(seed: int, size: int, minutes: int) -> None:
    events = history(seed, size)
    moment = datetime.fromisoformat(MOMENT) + timedelta(minutes=minutes)
    for records in BATCHES:
        ledger = ledger_at(values_of(events), unique_ids=False, batch_records=records)
        check(*folded(ledger, remember_until=moment), expect(events, moment))


@settings(max_examples=50)
@given(seed=SEEDS, size=SIZES)
def test_an_erased_text_is_in_no_row(seed: int, size: int) -> None:
    """Each text is unique here, so that a text in a row is that of one event."""
    events = history(seed, size)
    for number, event in enumerate(events):
        for name in ("text", "summary"):
            if event["payload"].get(name) is not None:
                event["payload"] = event["payload"] | {name: f"{event['payload'][name]} [{number}]"}
    projector, generation = folded(ledger_at(values_of(events), unique_ids=False))
    expected = expect(events)
    shown = {entry.content["text"] for entry in expected.entries.values() if entry.content}
    stored = b"".join(
        data for table in (*tables.ALL, due.NOW) for data in rows_of(projector.store, generation, table.name).values()
    )
    for number, event in enumerate(events):
        for name in ("text", "summary"):
            text = event["payload"].get(name)
            if text is not None and event["kind"] != "agent.spoke":
                is_shown = any(text in other for other in shown)
                assert (f"[{number}]".encode() in stored) == is_shown, (number, text)


@settings(max_examples=50)
@given(seed=SEEDS, size=SIZES)
def test_the_event_of_an_entry_shows_its_present_form(seed: int, size: int) -> None:
    events = history(seed, size)
    projector, generation = folded(ledger_at(values_of(events), unique_ids=False))
    for row in View(projector.store, generation).rows(tables.ROWS).values():
        shown = event_of(row)
        assert (shown.id, shown.space, shown.agent, shown.text) == (row.id, row.space, row.owner, row.text)
        for reader in (*AGENTS, "ghost"):
            assert may_read(reader, row) == (reader in (row.owner, *row.audience) or row.shared)
