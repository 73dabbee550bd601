"""The view of entries as plain values, compared with the oracle."""

import hashlib
import json
from typing import Any

import msgspec

from recallog_projections.models.long_term import tables, uses
from recallog_projections.models.tiers import tables as tiers
from recallog_projections.stores.store import Generation, Store
from recallog_projections.views import due
from support.entries_oracle import ExpectedEntries, ExpectedEntry, Fields
from support.finishing import finish
from support.tiers_oracle import INTERVAL


class View:
    """The rows of one fold, decoded."""

    def __init__(self, store: Store, generation: Generation) -> None:
        self._store, self._generation = store, generation

    def rows(self, table: Any) -> dict[tuple[str, str, str], Any]:
        chunk = finish(self._store.scan(self._generation, table.name, limit=1_000_000))
        return {item.row_key: table.decode(item.data) for item in chunk.items}

    def log(self, log: Any) -> dict[tuple[str, str], list[Any]]:
        entries: dict[tuple[str, str], list[Any]] = {}
        for (space, owner, _), entry in self.rows(log).items():
            entries.setdefault((space, owner), []).append(entry)
        return entries


def check_entries(store: Store, generation: Generation, expected: ExpectedEntries) -> None:
    """Assert that every table and log of the view holds what the oracle holds, and nothing else."""
    view = View(store, generation)
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
    listed = [twin.id for row in view.rows(tables.DIGESTS).values() for twin in row.entries if not twin.normal]
    assert sorted(listed) == sorted(compared)
    assert view.rows(tables.KEPT).keys() == {
        (space, owner, hashlib.blake2b(words.encode(), digest_size=16).hexdigest())
        for space, owner, words in expected.had
    }
    counts: dict[tuple[str, str, str], int] = {}
    for entry in live:
        owned = (entry.space, entry.owner, entry.content["type"])
        counts[owned] = counts.get(owned, 0) + 1
    assert {key: row.entries for key, row in view.rows(tables.TYPES).items()} == counts
    assert view.rows(tables.OF_TYPE).keys() == {
        (entry.space, entry.owner, f"{entry.content['type']}/{key_of(entry)}") for entry in live
    }
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
        # Entries that were retracted together are in the order of their retractions.
        assert sorted(map(repr, map(msgspec.structs.astuple, entries))) == sorted(map(repr, expected.audit[owner]))
    assert {
        owner: [(refusal.event, refusal.why) for refusal in refusals]
        for owner, refusals in view.log(tables.REFUSALS).items()
    } == expected.refusals
    assert {key: msgspec.structs.astuple(row) for key, row in view.rows(tables.ERASURES).items()} == expected.erasures


def check_uses(store: Store, generation: Generation, expected: ExpectedEntries) -> None:
    """Assert that the view of uses holds what the oracle holds, and nothing else."""
    view = View(store, generation)
    assert {key: msgspec.structs.astuple(row) for key, row in view.rows(uses.ROWS).items()} == {
        (entry.space, entry.owner, key_of(entry)): expected.uses[space, id_]
        for (space, id_), entry in expected.entries.items()
        if (space, id_) in expected.uses
    }
    agents = {key[:2]: msgspec.structs.astuple(row) for key, row in view.rows(uses.AGENTS).items()}
    assert agents == expected.lookups


def check_tiers(store: Store, generation: Generation, expected: ExpectedEntries) -> None:
    """Assert that the view of tiers holds what the oracle holds, and nothing else."""
    view, oracle = View(store, generation), expected.tiers
    entries = {key: expected.entries[key] for key in oracle.rows}
    assert {
        key: (row.id, row.offset, row.tier, round(row.importance, 9), row.exempt, round(row.surprise, 9))
        for key, row in view.rows(tiers.ROWS).items()
    } == {
        (entry.space, entry.owner, key_of(entry)): (
            entry.id,
            entry.offset,
            oracle.rows[key].tier,
            round(oracle.rows[key].importance, 9),
            oracle.is_exempt(expected, key),
            round(oracle.rows[key].surprise, 9),
        )
        for key, entry in entries.items()
    }
    for row in view.rows(tiers.ROWS).values():
        known = oracle.rows[row.space, row.id]
        assert (row.successes, row.reports) == (sum(known.outcomes), len(known.outcomes))
        found = (row.at, row.accesses, row.promoted_at, row.plan, row.touched, row.changes)
        assert found == (known.at, known.reads, known.promoted_at, known.plan, known.touched, known.changes)
    ended = {key: expected.entries[key] for key in oracle.ended}
    assert {key: row.tier for key, row in view.rows(tiers.ENDED).items()} == {
        (entry.space, entry.owner, key_of(entry)): oracle.ended[key].tier for key, entry in ended.items()
    }
    agents = {key[:2]: row for key, row in view.rows(tiers.AGENTS).items()}
    scheduled = {key[2]: row for key, row in view.rows(due.AT).items()}
    for space, agent in {*agents, *oracle.plans}:
        row, plans = agents.get((space, agent)) or tiers.AgentTiers(), oracle.of(space, agent)
        owned = [oracle.rows[key] for key in oracle.owned(expected, space, agent)]
        for tier in ("fast", "medium", "slow", "glacial"):
            assert getattr(row, tier) == sum(each.tier == tier for each in owned)
        assert abs(row.surprise - sum(each.surprise for each in owned)) < 1e-9
        assert (row.plans, row.unfinished, row.planned_at) == (plans.finished, plans.unfinished, plans.planned_at)
        assert (row.expired, row.evicted) == (plans.archived.count("expired"), plans.archived.count("tier_limit"))
        if not owned:
            assert row.due is None
        else:
            assert plans.since is not None
            assert row.due is not None
            assert (scheduled[row.due].space, scheduled[row.due].agent) == (space, agent)
            assert scheduled.pop(row.due).at == plans.since + INTERVAL
        log = view.log(tiers.MOVES).get((space, agent), [])
        assert [msgspec.structs.astuple(each) for each in log] == plans.moves
    assert scheduled == {}


def check_agents(view: View, expected: ExpectedEntries) -> None:
    agents = view.rows(tables.AGENTS)
    owners = {(entry.space, entry.owner) for entry in expected.entries.values()}
    for space, agent in {*owners, *expected.accounts, *(key[:2] for key in agents)}:
        row = agents.get((space, agent, "")) or tables.AgentEntries()
        assert sorted(row.pinned) == sorted(expected.pinned(space, agent))
        account = expected.accounts.get((space, agent))
        found = (row.balance, row.spent, row.eur)
        assert found == ((None, 0, 0) if account is None else (account.balance, account.spent, account.eur))


def key_of(entry: ExpectedEntry) -> str:
    return f"{entry.offset:020d}"


def expected_rows(entries: list[ExpectedEntry]) -> dict[tuple[str, str, str], Fields]:
    return {
        (entry.space, entry.owner, key_of(entry)): {
            name: value for name, value in entry.content.items() if not name.startswith("said_")
        }
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
