"""The process that puts all questions to the folder."""

import asyncio

from recallog import Memory
from soak.load import Load, arguments
from soak.questions import Asking


async def _main() -> None:
    report, rate, leak = arguments()
    load = Load(report, rate, *leak)
    async with Memory.open() as memory:
        await load.run(Asking(memory, load).act)


if __name__ == "__main__":
    asyncio.run(_main())
