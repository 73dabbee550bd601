"""The process that writes: it publishes, keeps, corrects, forgets, talks and plans."""

import asyncio

from recallog import Memory
from soak.load import Load, arguments
from soak.story import KEYS, acting, event, session, settings, text

_RETAINED_EVERY = 20
_FORGOTTEN_AFTER = 50 * _RETAINED_EVERY
"""So many actions after an entry was kept, it is forgotten."""


class Writer:
    """Chooses what is written by the number of the action."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    async def act(self, number: int) -> None:
        if number == 0:
            await self._memory.publish_many(settings())
        if number % 10 == 3:
            await self._items(number)
        elif number % 10 == 7:
            await self._talk(number)
        elif number % _RETAINED_EVERY == 5:
            await self._entries(number)
        elif number % 20 == 15:
            await self._working(number)
        elif number % 250 == 249:
            await self._memory.tiers.consolidate(*acting(number))
        else:
            await self._memory.publish(event(number))

    async def _items(self, number: int) -> None:
        items, who, key = self._memory.items, acting(number), f"key-{number // 10 % KEYS}"
        if number % 50 == 3:
            await items.delete(*who, "notes", key)
        elif number % 50 == 13:
            await items.put(*who, "workspace", f"{key}.md", f"# {key}\n\n{text(number)}")
        else:
            await items.put(*who, "notes", key, {"said": text(number), "number": number})

    async def _talk(self, number: int) -> None:
        where = (*acting(number), session(number))
        messages = [
            {"role": "user", "content": text(number), "id": f"ask-{number}"},
            {"role": "assistant", "content": text(number + 1), "id": f"answer-{number}"},
        ]
        await self._memory.conversation.add(*where, messages)
        if number % 50 == 47:
            await self._memory.conversation.compact(*where)

    async def _entries(self, number: int) -> None:
        long_term, tier = self._memory.long_term, ("fast", None, "slow")[number // _RETAINED_EVERY % 3]
        await long_term.retain(*acting(number), text(number), entry_id=f"entry-{number}", tier=tier)
        if (old := number - _FORGOTTEN_AFTER) > 0:
            await long_term.forget(*acting(old), [f"entry-{old}"], reason="asked for")

    async def _working(self, number: int) -> None:
        working, who = self._memory.working, acting(number)
        if number % 60 == 15:
            await working.set(*who, "goals", text(number))
        elif number % 60 == 35:
            await working.set(*who, "todo", text(number), session=session(number))
        else:
            await working.delete(*who, "goals")


async def _main() -> None:
    report, rate, _ = arguments()
    async with Memory.open() as memory:
        await Load(report, rate).run(Writer(memory).act)


if __name__ == "__main__":
    asyncio.run(_main())
