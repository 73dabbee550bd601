"""Events for 200 spaces, and a process that publishes them as fast as it can.

`python -m benchmarks.cluster.events LEDGER COUNT SEED` creates up to `READY_EVENTS` events, prints "ready", waits for a
line, publishes COUNT events, and prints the seconds that this took as JSON.
"""

import asyncio
import gc
import json
import sys
import time
from collections.abc import Iterator

from benchmarks.workload import SPACES, batches, villages
from recallog import Event
from recallog_streams.ledgers.kafka.address import KafkaAddress
from recallog_streams.ledgers.kafka.ledger import KafkaLedger

REGIONS = 4
SPACES_IN_ALL = REGIONS * SPACES
APPENDED_AT_ONCE = 8_000
READY_EVENTS = 120_000
"""Created before the measurement starts, since creating an event takes longer than publishing it. About 300 MB."""


def regions(count: int, *, seed: int = 0) -> Iterator[Event]:
    """`count` events of 200 spaces, in turn from four times 50 villages."""
    of_regions = [villages(-(-count // REGIONS), seed=REGIONS * seed + region) for region in range(REGIONS)]
    made = 0
    for by_region in zip(*of_regions, strict=True):
        for region, event in enumerate(by_region):
            if made < count:
                made += 1
                yield event.model_copy(update={"space": f"{event.space}-of-{region}"})


async def publish(ledger: KafkaLedger, events: Iterator[Event]) -> None:
    for batch in batches(events, APPENDED_AT_ONCE):
        await ledger.append(batch)


async def _main(ledger_url: str, count: int, seed: int) -> None:
    events = regions(count, seed=seed)
    ready = next(batches(events, min(count, READY_EVENTS)))
    gc.freeze()
    ledger = KafkaLedger(KafkaAddress.parse(ledger_url))
    try:
        await ledger.open()
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        began = time.perf_counter()
        await publish(ledger, iter(ready))
        await publish(ledger, events)
        print(json.dumps(time.perf_counter() - began), flush=True)
    finally:
        await ledger.close()


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
