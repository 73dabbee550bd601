"""The size of commits: records with much effect are several commits, and the views are the same."""

from typing import Any

import pytest

from recallog import Memory
from recallog.composition import assemble
from recallog_projections.rows import Changes
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.stores.store import Outcome
from recallog_schemas import Event
from recallog_streams.ledgers.memory import MemoryLedger
from support.events import MOMENT, event, run

pytestmark = pytest.mark.models("tiers")

ENTRIES, NAMED, MOST = 600, 50, 300


class Measured(MemoryStore):
    """Notes how many changes and offsets each commit has."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.commit_changes_max = most  # type: ignore[misc]
        self.sizes: list[tuple[int, int]] = []
        self.fails_at = -1

    async def commit(self, generation: Any, expected: Any, new: Any, changes: Changes) -> Outcome:
        if len(self.sizes) == self.fails_at:
            self.fails_at = -1
            raise ConnectionError("the store is away")
        count = len(changes.rows) + sum(len(entries) for entries in changes.logs.values())
        self.sizes.append((count, new.offset - expected.offset))
        return await super().commit(generation, expected, new, changes)


def history() -> list[Event]:
    """Entries with a tier that all move, and all are erased."""
    ids = [f"e-{number}" for number in range(ENTRIES)]
    events = [event("memory.retained", id=id_, payload={"text": f"About {id_}.", "tier": "fast"}) for id_ in ids]
    parts = [ids[start : start + NAMED] for start in range(0, ENTRIES, NAMED)]
    for number, part in enumerate(parts, start=1):
        moves = [{"id": id_, "from": "fast", "to": "medium", "reason": "ttl", "changes": 1} for id_ in part]
        plan = {"now": MOMENT, "ordinal": 0, "part": number, "parts": len(parts), "constants": {}}
        events.append(event("memory.consolidated", payload={**plan, "moves": moves, "archived": []}))
    return [*events, *(event("memory.erased", payload={"entries": part}) for part in parts[1:])]


async def folded(store: MemoryStore, ledger: MemoryLedger) -> tuple[dict[str, int], list[str], bool]:
    async with Memory(assemble(ledger, lambda namespace: store)) as memory:
        try:
            await memory.catch_up()
        except ConnectionError:
            await memory.catch_up()
        stats = await memory.tiers.stats("village", "baker")
        left = await memory.long_term.list("village", "baker", limit=1_000)
        return dict(stats.tier_counts), [each.id for each in left.entries], (await memory.admin.verify()).ok


@pytest.mark.parametrize("fails_at", [-1, 0, 7])
def test_commits_are_bounded_whatever_records_do_and_the_views_are_the_same(fails_at: int) -> None:
    async def work() -> None:
        ledger = MemoryLedger()
        await ledger.append(history())
        one, several = Measured(10**9), Measured(MOST)
        several.fails_at = fails_at
        whole = await folded(one, ledger)
        assert max(one.sizes)[0] > 10 * MOST
        assert await folded(several, ledger) == whole
        assert (whole[0]["medium"], len(whole[1]), whole[2]) == (NAMED, NAMED, True)
        assert sum(offsets for _, offsets in several.sizes) == len(history())
        # What one record has written comes on top.
        assert max(several.sizes)[0] < MOST + 15 * NAMED
        assert any(offsets > 1 for _, offsets in several.sizes)

    run(work())
