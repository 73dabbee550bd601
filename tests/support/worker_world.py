"""Several workers of one group, in seeded virtual time: rebalances, crashes, failing calls, lost views, rebuilds.

Every read meanwhile returns a fold of a prefix of the ledger, and in the end the views are the fold of all of it.
"""

import asyncio
import copy
import random
from contextlib import suppress
from typing import Any

from recallog_projections.stores.memory import MemoryStore
from recallog_projections.views import builtin, episodic
from recallog_schemas.errors import Rebuilding, StorageUnavailable
from recallog_streams import generations
from recallog_streams.ledgers.memory import MemoryLedger
from recallog_streams.live import CHECK_SECONDS, LiveProjector, ProjectedViews
from recallog_streams.partition_task import BACKOFF_SECONDS_MAX
from recallog_streams.projector import Projector
from support.folding import remembered
from support.group_in_memory import InMemoryGroup
from support.oracle import Expected, expect
from support.random_entries import WorldEvents
from support.random_events import AGENTS, SPACES, poison
from support.scheduler import SteppedLedger, SteppedStore
from support.view_checking import check_views
from support.virtual_time import run_in_virtual_time

SECONDS = 40.0
"""Virtual ones, of a world in which anything may happen; then everything works again."""
HEALS_SECONDS = 4 * BACKOFF_SECONDS_MAX + CHECK_SECONDS


class WorkerWorld:
    """All randomness comes from one generator, in the order of a virtual clock: a seed repeats a run."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.events = WorldEvents(rng)
        self.ledger = MemoryLedger(unique_ids=False, batch_records=rng.choice((1, 3, 50)))
        self.store = MemoryStore()
        self.failures = rng.choice((0.0, 0.005, 0.05))
        self.stale = rng.choice((0.0, 0.1))
        self.lively = True
        self.workers: dict[asyncio.Task[None], tuple[LiveProjector, InMemoryGroup]] = {}
        self.copies: list[dict[str, Any]] = []
        self._expected: dict[int, Expected] = {}
        self._stepped_ledger = SteppedLedger(self.ledger, self.fails)
        self._stepped_store = SteppedStore(self.store, self.fails, [])

    def fails(self) -> bool:
        return self.lively and self.rng.random() < self.failures

    def projector(self) -> Projector:
        return Projector(self._stepped_ledger, self._stepped_store, builtin.projections())

    def expected(self, until: int | None = None) -> Expected:
        values = self.ledger.values()[:until]
        if len(values) not in self._expected:  # a record never changes, so a fold per offset is cached
            self._expected[len(values)] = expect(values, unique_ids=False)
        return self._expected[len(values)]

    def come(self) -> None:
        """Add a worker without assigned partitions."""
        feed = InMemoryGroup(
            self.ledger,
            batch_records=self.rng.choice((1, 4)),
            assigned=False,
            fails=self.fails,
            is_stale=lambda: self.lively and self.rng.random() < self.stale,
        )
        live = LiveProjector(ProjectedViews(self.projector()), feed)
        self.workers[asyncio.create_task(live.run())] = (live, feed)

    def rebalance(self) -> None:
        """Assign the partition to one worker; sometimes the previous one is not notified, and both work on it."""
        chosen = self.rng.choice([feed for _, feed in self.workers.values()])
        for _, feed in self.workers.values():
            if feed is chosen:
                feed.assign(0)
            elif not self.lively or self.rng.random() < 0.8:
                feed.assign()

    def run(self) -> None:
        """Let anything happen to the workers, then check the views."""
        run_in_virtual_time(self._run())

    async def _run(self) -> None:
        self.come()
        self.rebalance()
        until = asyncio.get_running_loop().time() + SECONDS
        others = [asyncio.create_task(work) for work in (self.produce(until), self.read(until), self.rebuild(until))]
        while asyncio.get_running_loop().time() < until:
            await asyncio.sleep(self.rng.random() * 4)
            self.happen()
            self.raise_errors()
        await asyncio.gather(*others)
        self.lively = False
        if not self.workers:
            self.come()
        self.rebalance()
        await asyncio.sleep(HEALS_SECONDS)
        self.raise_errors()
        await self.judge()

    def happen(self) -> None:
        chance = self.rng.random()
        if chance < 0.25 and len(self.workers) < 3:
            self.come()
        elif chance < 0.4 and len(self.workers) > 1:
            task = self.rng.choice([*self.workers])
            live, _ = self.workers.pop(task)
            task.cancel() if self.rng.random() < 0.5 else live.stop()
        elif chance < 0.55:
            self.copies.append(copy.deepcopy(vars(self.store)))
        elif chance < 0.65:
            vars(self.store).update(copy.deepcopy(self.rng.choice([vars(MemoryStore()), *self.copies])))
        self.rebalance()

    def raise_errors(self) -> None:
        for task in self.workers:
            if task.done():
                task.result()

    async def produce(self, until: float) -> None:
        while asyncio.get_running_loop().time() < until:
            await self.ledger.append([self.events.event() for _ in range(self.rng.randrange(1, 4))])
            if self.rng.random() < 0.1:
                self.ledger.append_bytes(poison(self.rng))
            await asyncio.sleep(self.rng.choice((0.0, 0.05, 3.0)))

    async def read(self, until: float) -> None:
        while asyncio.get_running_loop().time() < until:
            await asyncio.sleep(self.rng.random())
            space, agent = self.rng.choice(SPACES), self.rng.choice(AGENTS)
            with suppress(Rebuilding):
                snapshot = await self.store.read(0, logs=episodic.logs(space, agent, 10_000))
                expected = self.expected(snapshot.checkpoint.offset + 1)
                assert remembered(snapshot) == expected.visible(space, agent)

    async def rebuild(self, until: float) -> None:
        while asyncio.get_running_loop().time() < until:
            await asyncio.sleep(self.rng.random() * 20)
            with suppress(StorageUnavailable):
                await generations.rebuild(self.projector(), 0)

    async def judge(self) -> None:
        pointer = await self.store.pointer(0)
        assert pointer.active is not None
        checkpoint = await self.store.checkpoint(pointer.active)
        assert checkpoint is not None
        assert checkpoint.offset == len(self.ledger.values()) - 1
        check_views(self.store, pointer.active, self.expected())
        assert [live.problems for live, _ in self.workers.values()] == [[]] * len(self.workers)
        for task, (live, _) in self.workers.items():
            live.stop()
            await task
