"""The client of the server: it puts all questions over HTTP, and follows the events of a space.

The stream must have each event of the space once and in order, also where the client leaves it and comes back.
"""

import asyncio
from contextlib import aclosing, suppress

from recallog import Remote
from soak.load import Load, arguments
from soak.questions import Asking
from soak.story import FOLLOWED

_LEAVES_AFTER = 200
"""Events after which the client leaves the stream and opens another."""


async def _follow(memory: Remote, load: Load) -> None:
    start = 0
    while True:
        read = 0
        async with aclosing(memory.tail(FOLLOWED, start=f"0:{start}")) as stream:  # type: ignore[type-var]
            async for each in stream:
                if each.event.space != FOLLOWED or each.position.offset < start:
                    load.failed(ValueError(f"the stream had {each.position} after 0:{start - 1}"))
                start = each.position.offset + 1
                load.counts["followed"] += 1
                read += 1
                if read == _LEAVES_AFTER:
                    break


async def _main() -> None:
    report, rate, (url,) = arguments()
    load = Load(report, rate)
    async with Remote(url) as memory:
        following = asyncio.create_task(_follow(memory, load))
        await load.run(Asking(memory, load).act)
        if following.done() and (error := following.exception()) is not None:
            load.failed(RuntimeError(f"the stream ended: {error!r}"))
            load.write()
        following.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await following


if __name__ == "__main__":
    asyncio.run(_main())
