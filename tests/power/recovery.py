"""Opens a folder as it may be after a power failure, and checks what Recallog makes of it."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from power.workload import WHO, keys_of, opened
from recallog import Memory
from recallog_schemas import codec
from recallog_schemas.errors import RecallogError
from support.waiting import WAIT_SECONDS


async def values_of(memory: Memory) -> list[bytes]:
    """All records of the ledger, as they are stored."""
    return [bytes(value) async for batch in memory.admin.records() for _, value in batch.records]


async def problems(
    home: Path, records: Sequence[bytes], said: Sequence[Mapping[str, Any]], then: Mapping[str, Any] | None
) -> list[str]:
    """What is wrong with a folder. Empty: everything acknowledged is there, and the rest was built again.

    `records` is the ledger at the end of the run, `said` what was acknowledged before the failure, and `then` the keys
    after the change that was in progress.
    """
    try:
        return [*await _of_memory(home, records, said), *await _of_keys(home, said, then)]
    except RecallogError as error:
        return [f"{type(error).__name__}: {error}"]


async def _of_memory(home: Path, records: Sequence[bytes], said: Sequence[Mapping[str, Any]]) -> list[str]:
    acknowledged = max((each["end"] for each in said if "end" in each), default=0)
    async with opened(home) as memory:
        found = await values_of(memory)
        if len(found) < acknowledged:
            return [f"{acknowledged - len(found)} of {acknowledged} acknowledged events are lost"]
        if found != list(records[: len(found)]):
            return ["the ledger has other records than were written"]
        events = [codec.decode(value) for value in records]
        published = {number: event for number, event in enumerate(events) if event.id.startswith("event-")}
        positions = (await memory.publish_many(list(published.values()))).items
        kept = [(number, at.offset) for number, at in zip(published, positions, strict=True) if number < len(found)]
        wrong = [f"the event at 0:{number} has the position 0:{at} too" for number, at in kept if number != at]
        if (degraded := await _degraded(memory)) is not None:
            wrong.append(f"recall is degraded: {degraded}")
        report = await memory.admin.verify()
        return wrong + [f"verify: {each.problem}" for each in report.findings()]


async def _degraded(memory: Memory) -> str | None:
    """Why recall still does without the index after a while; None if it uses it again.

    Damage that a question finds makes that answer poorer, and has the index built again.
    """
    give_up = time.monotonic() + WAIT_SECONDS
    while (degraded := (await memory.recall(*WHO, "who owes flour?")).degraded) is not None:
        if time.monotonic() > give_up:
            return degraded
        await memory.catch_up_index()
    return None


async def _of_keys(home: Path, said: Sequence[Mapping[str, Any]], then: Mapping[str, Any] | None) -> list[str]:
    acknowledged = [each["keys"] for each in said if "keys" in each] or [{}]
    found = await keys_of(home)
    if found == acknowledged[-1] or found == then:
        return []
    return [f"the keys are {found}, acknowledged were {acknowledged[-1]}"]
