"""Random histories of entries, compared with an oracle: verdicts, rows, accounts and logs, wherever batches end."""

import json
import random
from datetime import datetime, timedelta
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from recallog_projections.stores.store import Generation
from recallog_projections.views import due
from recallog_projections.views.entries import tables
from recallog_projections.views.entries.reading import event_of, may_read
from recallog_streams import dead_letters
from recallog_streams.projector import Projector
from support.entries_oracle import ExpectedEntries, ExpectedEntry, expect
from support.events import MOMENT
from support.folding import all_rows, finish, folded, ledger_at, rows_of
from support.random_entries import AGENTS, Fields, random_history

SEEDS = st.integers(0, 2**32)
SIZES = st.integers(1, 120)
BATCHES = (1, 1_000)


def history(seed: int, size: int) -> list[Fields]:
    return random_history(random.Random(seed), size)


def values_of(events: list[Fields]) -> list[bytes]:
    return [json.dumps(event).encode() for event in events]


class View:
    """The rows of one fold, decoded."""

    def __init__(self, projector: Projector, generation: Generation) -> None:
        self._projector, self._generation = projector, generation

    def rows(self, table: Any) -> dict[tuple[str, str, str], Any]:
        found = rows_of(self._projector.store, self._generation, table.name)
        return {address: table.decode(data) for address, data in found.items()}

    def log(self, log: Any) -> dict[tuple[str, str], list[Any]]:
        entries: dict[tuple[str, str], list[Any]] = {}
        for (space, owner, _), entry in self.rows(log).items():
            entries.setdefault((space, owner), []).append(entry)
        return entries

    def dead_letters(self) -> set[str]:
        return {
            letter.reason for letter in finish(dead_letters.all_dead_letters(self._projector.store, self._generation))
        }


def check(view: View, expected: ExpectedEntries) -> None:
    """Assert that every table and log of the view holds what the oracle holds, and nothing else."""
    assert view.dead_letters() <= {"conflict"}
    every = list(expected.entries.values())
    live = [entry for entry in every if entry.status == "live"]
    ended = [entry for entry in every if entry.status in ("retracted", "archived")]
    assert {key[::2]: verdict_of(ref) for key, ref in view.rows(tables.IDS).items()} == {
        (entry.space, entry.id): expected_verdict(entry) for entry in every
    }
    assert {key: fields_of(row) for key, row in view.rows(tables.ROWS).items()} == expected_rows(live)
    assert {key: fields_of(row) for key, row in view.rows(tables.ENDED).items()} == expected_rows(ended)
    assert {(key[0], row.owner, *key[1:]) for key, row in view.rows(tables.READERS).items()} == {
        (entry.space, entry.owner, "" if reader == "*" else reader, key_of(entry))
        for entry in live
        for reader in entry.readers
    }
    compared = [entry.id for entry in live if entry.content["type"] not in ("tool_usage", "summary", "experience")]
    assert sorted(row.id for row in view.rows(tables.DIGESTS).values()) == sorted(compared)
    counts: dict[tuple[str, str, str], int] = {}
    for entry in live:
        owned = (entry.space, entry.owner, entry.content["type"])
        counts[owned] = counts.get(owned, 0) + 1
    assert {key: row.entries for key, row in view.rows(tables.TYPES).items()} == counts
    dependents: dict[tuple[str, str, str], list[str]] = {}
    for entry in live:
        for source in entry.content["sources"]:
            dependents.setdefault((entry.space, "", source), []).append(entry.id)
    assert {key: sorted(row.ids) for key, row in view.rows(tables.SOURCES).items()} == {
        key: sorted(ids) for key, ids in dependents.items()
    }
    assert {(*key[:2], row.id, key[2]) for key, row in view.rows(tables.SUBJECTS).items()} == {
        (entry.space, entry.owner, entry.id, f"{entry.content['subject']}/{entry.offset:020d}")
        for entry in live + ended
        if entry.content["subject"] is not None
    }
    check_agents(view, expected)
    assert {
        owner: [msgspec.structs.astuple(entry) for entry in entries]
        for owner, entries in view.log(tables.AUDIT).items()
    }.keys() == expected.audit.keys()
    for owner, entries in view.log(tables.AUDIT).items():
        # Entries that were retracted together stand in the order of their retractions.
        assert sorted(map(repr, map(msgspec.structs.astuple, entries))) == sorted(map(repr, expected.audit[owner]))
    assert {
        owner: [(refusal.event, refusal.entries) for refusal in refusals]
        for owner, refusals in view.log(tables.REFUSALS).items()
    } == expected.refusals
    assert {key: msgspec.structs.astuple(row) for key, row in view.rows(tables.ERASURES).items()} == expected.erasures


def check_agents(view: View, expected: ExpectedEntries) -> None:
    agents = view.rows(tables.AGENTS)
    for space in {entry.space for entry in expected.entries.values()} | {space for space, _ in expected.accounts}:
        for agent in (*AGENTS, "ghost"):
            row = agents.get((space, agent, "")) or tables.AgentEntries()
            assert sorted(row.pinned) == sorted(expected.pinned(space, agent))
            account = expected.accounts.get((space, agent))
            found = (row.balance, row.spent, row.eur)
            assert found == ((None, 0, 0) if account is None else (account.balance, account.spent, account.eur))


def key_of(entry: ExpectedEntry) -> str:
    return f"{entry.offset:020d}"


def expected_rows(entries: list[ExpectedEntry]) -> dict[tuple[str, str, str], Fields]:
    return {
        (entry.space, entry.owner, key_of(entry)): entry.content
        | {"space": entry.space, "owner": entry.owner, "id": entry.id, "offset": entry.offset}
        for entry in entries
    }


def fields_of(row: tables.EntryRow) -> Fields:
    fields = msgspec.structs.asdict(row)
    return fields | {
        "metadata": json.loads(row.metadata or b"{}"),
        "sources": list(row.sources),
        "audience": list(row.audience),
    }


def verdict_of(ref: tables.EntryRef) -> tuple[Any, ...]:
    return (ref.owner, ref.offset, ref.status, ref.reason, ref.of, ref.similarity, sorted(ref.retracted))


def expected_verdict(entry: ExpectedEntry) -> tuple[Any, ...]:
    similarity = entry.similarity
    return (entry.owner, entry.offset, entry.status, entry.reason, entry.of, similarity, sorted(entry.retracted))


@settings(max_examples=250)
@given(seed=SEEDS, size=SIZES)
def test_entries_equal_the_oracle_wherever_batches_end(seed: int, size: int) -> None:
    events = history(seed, size)
    expected = expect(events)
    folds = [folded(ledger_at(values_of(events), unique_ids=False, batch_records=records)) for records in BATCHES]
    for projector, generation in folds:
        check(View(projector, generation), expected)
    one, thousand = (all_rows(projector, generation) for projector, generation in folds)
    assert one == thousand


@settings(max_examples=100)
@given(seed=SEEDS, size=SIZES, minutes=st.integers(-1, 60))
def test_as_of_a_time_entries_equal_the_oracle_of_the_events_until_then(seed: int, size: int, minutes: int) -> None:
    events = history(seed, size)
    moment = datetime.fromisoformat(MOMENT) + timedelta(minutes=minutes)
    for records in BATCHES:
        ledger = ledger_at(values_of(events), unique_ids=False, batch_records=records)
        check(View(*folded(ledger, remember_until=moment)), expect(events, moment))


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
    for row in View(projector, generation).rows(tables.ROWS).values():
        shown = event_of(row)
        assert (shown.id, shown.space, shown.agent, shown.text) == (row.id, row.space, row.owner, row.text)
        for reader in (*AGENTS, "ghost"):
            assert may_read(reader, row) == (reader in (row.owner, *row.audience) or row.shared)
