"""The publisher: sends the due triggers of the partitions that this process maintains to the queue of triggers.

It reads only the active generation of a partition, and only when it is live. So a rebuild does not publish triggers,
and after a cutover or a move of the partition to another worker all due triggers are sent again.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, repeat, takewhile

import msgspec

from recallog.queries import due
from recallog.reading.query_router import QueryRouter
from recallog_projections.concurrency import gather_limited
from recallog_projections.views.due import Scheduled, Work
from recallog_schemas import triggers
from recallog_schemas.errors import Rebuilding, RecallogError, ViewsTooNew
from recallog_schemas.views import PendingTrigger
from recallog_streams.ledgers.ledger import Batch
from recallog_streams.ledgers.trigger_queue import Doorbell, TriggerQueue
from recallog_streams.live import LiveProjector
from recallog_streams.partition_task import TaskState, backoff
from recallog_streams.stop_signal import StopSignal

LOOK_SECONDS = 0.5
"""Seconds between two checks for partitions that became live. Commits are processed as they happen."""
REST_SECONDS = 0.1
REST_LOOKS = 9
"""The pause after reading a partition: seconds, and a minimum in durations of the read, so that a busy partition is
read once for several commits. A read takes six requests to the store, and one or two for each changed space. At 1,000
events per second, ten reads per second took a sixth of a worker's time."""
AGAIN_SECONDS = 10.0
"""Seconds after which an unanswered trigger is sent again if its message seems to be lost: no trigger of its kind was
answered for this time, or a trigger sent half this time later was answered. A backlog that agents process is not sent
again. The pauses do not grow: pauses that had doubled during minutes of faults left triggers open for ten more minutes
while recovered agents were idle."""
REPEATS_MAX = 200
"""Number of triggers of a partition that are sent again at a time, at most twice per second."""
REPEAT_SECONDS = 0.5
SENT_MAX = 2_000
"""Number of unanswered triggers of each kind in a partition that are remembered. Further ones wait in the views until
half of these are answered; other kinds are not delayed."""
PAGES_AT_ONCE = 32
"""Pages of due work that one read takes of each kind, so that a backlog does not delay the processing of answers."""

_CLOSINGS = triggers.all_closings()

_log = logging.getLogger("recallog.triggers")


class _Seen(msgspec.Struct):
    """The fields of an event that the publisher reads."""

    space: str
    agent: str
    kind: str
    causation_id: str | None = None


_decode = msgspec.json.Decoder(_Seen).decode


@dataclass(slots=True)
class _Sent:
    message: Doorbell
    kind: str
    at: float
    """When it was last sent."""
    look_at: float
    """When it may have to be sent again."""
    first_at: float
    """When it was first sent."""


@dataclass(slots=True)
class _Answered:
    """The answers to the triggers of one kind."""

    newest_at: float
    """When the newest answered trigger was sent."""
    at: float
    """When the last answer was noticed."""


@dataclass(slots=True, eq=False)
class _Watched:
    """One live partition."""

    life: tuple[str, int]
    """Its generation, and the number of times that its task became live."""
    cursor: str | None = None
    """The key of the last row of `due.now` that was processed."""
    more: bool = True
    """Whether rows may exist after the cursor."""
    spaces: set[str] | None = None
    """Spaces in which agents may have become due by count or time since the last read; None: all spaces."""
    left: dict[str, str | None] = field(default_factory=dict)
    """For kinds with too many unanswered triggers: the key of the row before the first unsent one."""
    sent: dict[str, _Sent] = field(default_factory=dict)
    """The triggers that were sent and are not answered yet, by id, in the order of `look_at`."""
    of_kind: Counter[str] = field(default_factory=Counter)
    """Their number by kind."""
    answered: dict[str, _Answered] = field(default_factory=dict)
    """By kind."""
    repeats_from: float = 0.0
    """When further triggers may be sent again."""
    closed: set[str] = field(default_factory=set)
    """Ids of unanswered triggers whose answer was seen since the last read."""

    def forget(self, ids: Iterable[str]) -> None:
        """Forget some triggers."""
        for id_ in ids:
            if (sent := self.sent.pop(id_, None)) is not None:
                self.of_kind[sent.kind] -= 1

    def note_answers(self, ids: Iterable[str], now: float) -> None:
        """Note that some triggers are answered, and forget them."""
        for id_ in ids:
            if (sent := self.sent.get(id_)) is not None:
                before = self.answered.get(sent.kind)
                self.answered[sent.kind] = _Answered(max(sent.at, before.newest_at if before else 0.0), now)
        self.forget(ids)

    def seems_lost(self, sent: _Sent, now: float) -> bool:
        """Whether the message of a trigger probably did not reach an agent, or reached one that has died."""
        answered = self.answered.get(sent.kind)
        if answered is None or answered.at <= now - AGAIN_SECONDS:
            return True
        return answered.newest_at >= sent.at + AGAIN_SECONDS / 2


def _may_close(data: bytes) -> bool:
    """Whether an event may have a `causation_id`, in any JSON spelling. Other events do not close triggers."""
    return b"causation_id" in data or b"\\u" in data


class TriggerPublisher:
    """Publishes the triggers of one group of views: the built-in views, or a user's projection."""

    def __init__(
        self,
        router: QueryRouter,
        live: LiveProjector,
        queue: TriggerQueue,
        published: Callable[[int, bool], None],
        *,
        recurring: bool = True,
    ) -> None:
        """`live` maintains the views that `router` reads. With `recurring`, the views also have plans and reflections.

        `published` is called with the number of messages sent, and whether they are repeats.
        """
        self._router = router
        self._recurring = recurring
        self._live = live
        self._queue = queue
        self._published = published
        self._watched: dict[int, _Watched] = {}
        self._changed = asyncio.Event()
        self.problem = ""
        """Why triggers are not published, in one sentence; "" if they are."""
        live.on_commit(self._commit)

    @property
    def unanswered(self) -> dict[int, list[float]]:
        """By partition: for how many seconds each trigger that was sent has not been answered."""
        now = self._now()
        return {
            partition: [now - sent.first_at for sent in watched.sent.values()]
            for partition, watched in self._watched.items()
        }

    def _commit(self, batch: Batch) -> None:
        """Note that the views of a live partition now contain `batch`."""
        watched = self._watched.get(batch.partition)
        if watched is None:
            return  # it will be read completely
        keys = batch.keys or repeat(None)
        for (_, data), key in zip(batch.records, keys, strict=False):
            with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                if key is None or _may_close(data):
                    self._note(watched, _decode(data))
                elif watched.spaces is not None:
                    watched.spaces.add(key.decode())
        watched.more = True
        self._changed.set()

    def _note(self, watched: _Watched, seen: _Seen) -> None:
        if watched.spaces is not None:
            watched.spaces.add(seen.space)
        if seen.kind in _CLOSINGS and seen.causation_id is not None:
            sent = watched.sent.get(seen.causation_id)
            if sent is not None and (sent.message.space, sent.message.agent) == (seen.space, seen.agent):
                watched.closed.add(seen.causation_id)

    async def run(self, stopping: StopSignal) -> None:
        """Publish what falls due until `stopping` is set. A problem is retried, with increasing pauses."""
        failures = 0
        while not stopping:
            self._changed.clear()
            began = self._now()
            try:
                await stopping.unless(self._round())
            except RecallogError as error:
                failures += 1
                self._report(str(error))
                await stopping.pause(backoff(failures))
                continue
            failures = 0
            self._report("")
            await stopping.pause(max(REST_SECONDS, REST_LOOKS * (self._now() - began)))
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await stopping.unless(self._changed.wait())

    def _report(self, problem: str) -> None:
        if problem and problem != self.problem:
            _log.warning("%s", problem)
        self.problem = problem

    async def _round(self) -> None:
        lives = {
            task.partition: (task.generation.id, task.lives)
            for task in self._live.tasks
            if task.state is TaskState.LIVE and task.generation is not None
        }
        for partition in self._watched.keys() - lives.keys():
            del self._watched[partition]
        for partition, life in lives.items():
            if partition not in self._watched or self._watched[partition].life != life:
                self._watched[partition] = _Watched(life)
        await gather_limited(self._look, sorted(lives))

    async def _look(self, partition: int) -> None:
        watched = self._watched[partition]
        spaces, watched.spaces = watched.spaces, set()
        try:
            await self._settle(partition, watched)
            await self._publish_work(partition, watched)
            if self._recurring and (spaces is None or spaces):
                await self._publish_recurring(partition, watched, None if spaces is None else sorted(spaces))
            await self._repeat(partition, watched)
        except BaseException as error:
            watched.spaces = None if spaces is None or watched.spaces is None else watched.spaces | spaces
            # After a cutover or a loss of the views the projector also leaves this partition as soon as it notices. A
            # generation of newer code is read by workers of that version.
            if not isinstance(error, Rebuilding | ViewsTooNew):
                raise

    async def _settle(self, partition: int, watched: _Watched) -> None:
        """Forget the answered triggers. A trigger whose answer was not accepted stays, and is sent again later."""
        closed, watched.closed = watched.closed, set()
        if not closed:
            return
        asked = [(watched.sent[id_].message.space, id_) for id_ in closed if id_ in watched.sent]
        try:
            still_due = await self._router.of_partition(partition, partial(due.still_due, asked=asked))
        except BaseException:
            watched.closed |= closed
            raise
        watched.note_answers(closed - still_due, self._now())

    async def _publish_work(self, partition: int, watched: _Watched) -> None:
        """Publish the triggers that single events made due, from the cursor on."""
        for kind in [kind for kind in watched.left if watched.of_kind[kind] <= SENT_MAX // 2]:
            await self._publish_left(partition, watched, kind)
        for _ in range(PAGES_AT_ONCE):
            if not watched.more:
                return
            watched.more = False  # before reading: a concurrent commit sets it again
            try:
                page = await self._router.of_partition(partition, partial(due.work, after=watched.cursor))
                await self._publish(watched, self._room_for(watched, page.items, watched.cursor))
            except BaseException:
                watched.more = True
                raise
            if page.items:
                watched.cursor = page.items[-1][0]
            watched.more |= not page.last
        self._changed.set()

    async def _publish_left(self, partition: int, watched: _Watched, kind: str) -> None:
        """Publish the remaining triggers of a kind that had too many unanswered ones, up to the cursor."""
        after = watched.left[kind]
        for _ in range(PAGES_AT_ONCE):
            page = await self._router.of_partition(partition, partial(due.work, after=after))
            items = [(key, row) for key, row in page.items if watched.cursor is not None and key <= watched.cursor]
            del watched.left[kind]
            try:
                await self._publish(
                    watched, self._room_for(watched, [each for each in items if each[1].kind == kind], after)
                )
            except BaseException:
                watched.left[kind] = after
                raise
            if kind in watched.left or page.last or len(items) < len(page.items):
                return
            watched.left[kind] = after = items[-1][0]

    def _room_for(self, watched: _Watched, items: Sequence[tuple[str, Work]], after: str | None) -> list[Work]:
        """The rows that may be sent. For kinds with too many unanswered triggers, it notes the key from which to read
        them again: `after`, or the key of the row before the first of them."""
        room = []
        of_kind = Counter[str]()
        for key, row in items:
            if row.kind not in watched.left and watched.of_kind[row.kind] + of_kind[row.kind] < SENT_MAX:
                of_kind[row.kind] += 1
                room.append(row)
            else:
                watched.left.setdefault(row.kind, after)
            after = key
        return room

    async def _publish_recurring(self, partition: int, watched: _Watched, spaces: Sequence[str] | None) -> None:
        """Publish the plans and reflections that are due in some spaces, or in all."""
        for query in (due.find_scheduled, due.due_by_count):
            found: Sequence[Scheduled | PendingTrigger] = await self._router.of_partition(
                partition, partial(query, spaces=spaces)
            )
            await self._publish(watched, found)

    async def _publish(self, watched: _Watched, found: Iterable[Work | Scheduled | PendingTrigger]) -> None:
        new = [row for row in found if row.trigger not in watched.sent]
        if not new:
            return
        now = self._now()
        # Noted before sending: the answer may be committed before the broker has acknowledged the message.
        for row in new:
            message = Doorbell(row.space, row.agent, row.trigger)
            watched.sent[row.trigger] = _Sent(message, row.kind, now, now + AGAIN_SECONDS, now)
            watched.of_kind[row.kind] += 1
        try:
            await self._queue.send([watched.sent[row.trigger].message for row in new])
        except BaseException:
            watched.forget(row.trigger for row in new)
            raise
        self._published(len(new), False)

    async def _repeat(self, partition: int, watched: _Watched) -> None:
        """Resend triggers that have been unanswered for a while, if the views still show them as due."""
        now = self._now()
        if now < watched.repeats_from:
            return
        waited = list(islice(takewhile(lambda sent: sent.look_at <= now, watched.sent.values()), REPEATS_MAX))
        for sent in waited:
            sent.look_at = now + AGAIN_SECONDS
            watched.sent[sent.message.trigger] = watched.sent.pop(sent.message.trigger)  # to the end of the order
        late = [sent for sent in waited if watched.seems_lost(sent, now)]
        if not late:
            return
        watched.repeats_from = now + REPEAT_SECONDS
        asked = [(sent.message.space, sent.message.trigger) for sent in late]
        still_due = await self._router.of_partition(partition, partial(due.still_due, asked=asked))
        watched.forget(sent.message.trigger for sent in late if sent.message.trigger not in still_due)
        again = [sent for sent in late if sent.message.trigger in still_due]
        if again:
            await self._queue.send([sent.message for sent in again])
            self._published(len(again), True)
        for sent in again:
            sent.at = now

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
