"""Kill -9 of processes that add the same conversation: every message is there once and in order.

A failing run prints its seed; `RECALLOG_TEST_SEED=<seed>` makes the same choices again (the scheduling of the system
cannot be repeated).
"""

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest

from recallog import Memory
from support.events import recorded, run
from support.processes import begun, ended

pytestmark = pytest.mark.models("conversations")

MESSAGES = 300
KILLS = 6
ADD = """
import asyncio, json, sys
from recallog import Memory

async def main(home, file, steps):
    with open(file) as opened:
        messages = json.load(opened)
    async with Memory.open(home) as memory:
        await memory.spaces()
        print("begins", flush=True)
        for end in range(int(steps), len(messages) + int(steps), int(steps)):
            await memory.conversation.add("s", "bot", "x", messages[:end])

asyncio.run(main(*sys.argv[1:]))
"""


def conversation() -> list[dict[str, Any]]:
    """Messages of which many are equal, some call tools, and some are larger than an event."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Be kind."}]
    for number in range(MESSAGES // 3):
        id_ = f"call-{number}"
        function = {"name": "look", "arguments": json.dumps({"number": number % 7})}
        call = {"id": id_, "type": "function", "function": function}
        messages.append({"role": "user", "content": ("yes", "no", "x" * 300_000)[number % 3 if number % 20 else 2]})
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": id_, "content": "found"})
    return messages


async def whole(memory: Memory) -> list[dict[str, Any]]:
    """All messages of the conversation, the newest page first."""
    page = await memory.conversation.messages("s", "bot", "x", whole=True)
    found = list(page.messages)
    while page.left_out:
        page = await memory.conversation.messages("s", "bot", "x", before=page.ids[0], whole=True)
        found = [*page.messages, *found]
    return found


def test_two_processes_that_add_one_conversation_and_are_killed_leave_each_message_once(
    tmp_path: Path, chance: random.Random
) -> None:
    home, file, messages = tmp_path / "home", tmp_path / "messages.json", conversation()
    file.write_text(json.dumps(messages))
    killed = 0
    for _ in range(KILLS):
        two = [begun(ADD, home, file, steps) for steps in (chance.randint(1, 20), 1_000)]
        chance.shuffle(two)
        time.sleep(chance.uniform(0.0, 0.4))
        two[0].kill()
        killed += ended(two[0]) == -9
        if chance.random() < 0.5:
            two[1].kill()
        assert ended(two[1]) in (0, -9)

    async def check() -> None:
        async with Memory.open(home) as memory:
            await memory.conversation.add("s", "bot", "x", messages)
            assert (await memory.conversation.add("s", "bot", "x", messages)).added == 0
            assert await whole(memory) == messages
            events = await recorded(memory)
            own = [each for each in events if each.kind not in ("message.part", "memory.accessed")]
            assert len(own) == len(messages)
            assert (await memory.admin.verify("views")).ok

    run(check())
    assert killed
