"""What a type checker says about calls of operations: right calls pass, and a wrong one is an error at its line."""

import re
from pathlib import Path

import pytest
from mypy import api

ROOT = Path(__file__).parents[2]

CALLS = '''\
"""Calls of operations. A comment names the error of its line."""

from datetime import UTC, datetime

from recallog import Event, Memory, Position, Remote
from recallog.operations.parameters import RecallOptions


async def right(memory: Memory, options: RecallOptions) -> float:
    position = await memory.publish({"space": "village", "agent": "baker", "kind": "agent.spoke", "turn": 3})
    await memory.publish(Event(space="village", agent="baker", kind="agent.spoke"))
    await memory.publish_many([{"space": "village"}, Event(space="village", agent="baker", kind="agent.spoke")])
    await memory.episodic("village", "baker", after=position, as_of="2026-03-01T12:00:00Z")
    await memory.episodic("village", agent="baker", window=3, as_of=datetime.now(UTC))
    await memory.timeline("village", "baker", since="2026-03-01T12:00:00Z", before="0:41", kinds=["agent.spoke"])
    await memory.timeline("village", "baker", until=datetime.now(UTC), before=Position(0, 41), limit=20)
    await memory.recall("village", "baker", "who?", top_k=5, fusion="rrf", channels=["keyword"], min_similarity=0.3)
    found = await memory.recall("village", "baker", "who?", **options)
    await memory.admin.verify(progress=lambda done, total: print(done, total))
    await memory.admin.rebuild("index", accept=True)
    known: bool = found.known
    return sum(hit.score for hit in found.hits) if known else 0.0


async def right_from_afar(memory: Remote) -> int:
    await memory.publish({"space": "village", "agent": "baker", "kind": "agent.spoke", "turn": 3})
    found = await memory.items.get("village", "baker", "notes", "miller")
    await memory.admin.rebuild("index", progress=lambda done, total: print(done, total))
    async for each in memory.tail("village", start="0:41"):
        return each.position.offset
    return 0 if found.item is None else found.item.version


async def wrong_from_afar(memory: Remote) -> None:
    await memory.recall("village", "baker", "who?", min_similarty=0.3)  # call-arg
    memory.open("./memory")  # attr-defined


async def wrong(memory: Memory) -> None:
    await memory.recall("village", "baker", "who?", min_similarty=0.3)  # call-arg
    await memory.recall("village", "baker", "who?", top_k="5")  # arg-type
    await memory.recall("village", "baker", "who?", fusion="rff")  # arg-type
    await memory.recall("village", "baker", "who?", channels=["smell"])  # list-item
    await memory.recall("village", "baker")  # call-arg
    await memory.episodic("village", "baker", 3)  # call-arg
    await memory.timeline("village", "baker", since=5)  # arg-type
    await memory.timeline("village", "baker", around="e-17")  # call-arg
    await memory.publish("Bread!")  # arg-type
    await memory.admin.rebuild("everything")  # arg-type
    await memory.admin.verify(progress=len)  # arg-type
    await memory.rebuild("views")  # attr-defined
    (await memory.recall("village", "baker", "who?")).hits[0].scroe  # attr-defined
    (await memory.episodic("village", "baker")).knwon  # attr-defined
    wrong_options: RecallOptions = {"authr": "baker"}  # typeddict-unknown-key
'''


SYNC_CALLS = (
    CALLS.replace("await ", "")
    .replace("async ", "")
    .replace(
        "from recallog import Event, Memory, Position, Remote\n",
        "from recallog import Batch, Event, Position\nfrom recallog.views import RecallView\n",
    )
    + """

def of_notebooks(home: str) -> RecallView:
    with Memory.open(home, progress=lambda done, total: print(done, total)) as memory:
        tiers: Tiers = memory.tiers
        tiers.pressure("village", "baker")
        batches: list[Batch] = list(memory.admin.records())
        memory.close()
        return memory.recall("village", "baker", batches[0].records[0][1].decode())


async def awaited(memory: Memory) -> None:
    await memory.episodic("village", "baker")  # misc
    async with memory:  # attr-defined
        pass
"""
)
SYNC_CALLS = SYNC_CALLS.replace(
    "RecallOptions\n", "RecallOptions\nfrom recallog.sync import Memory, Remote, Tiers\n", 1
)


ANSWERS = '''\
"""Answers have the types of the views, and derived operations keep each parameter."""

from collections.abc import Callable
from typing import assert_type

from recallog import Remote, sync
from recallog.views import EpisodicView, ItemChange, ItemFound, VerifyReport


async def from_afar(memory: Remote) -> None:
    assert_type(await memory.episodic("village", "baker", window=3), EpisodicView)
    assert_type(await memory.items.get("village", "baker", "notes", "miller", as_of="0:41"), ItemFound)
    assert_type(await memory.admin.verify(), VerifyReport)
    await memory.items.get("village", "baker", "notes")  # call-arg
    await memory.items.get("village", "baker", "notes", "miller", aftr="0:41")  # call-arg
    await memory.items.put("village", "baker", "notes", 3, "value")  # arg-type
    wrong: int = await memory.episodic("village", "baker")  # assignment


def local(memory: sync.Memory) -> None:
    assert_type(memory.episodic("village", "baker", window=3), EpisodicView)
    assert_type(memory.items.put("village", "baker", "notes", "miller", 9, base=1), ItemChange)
    assert_type(sync.Memory.episodic(memory, "village", "baker"), EpisodicView)
    named: Callable[[str, str], EpisodicView] = memory.episodic
    memory.items.get("village", "baker", "notes")  # call-arg
    memory.items.get("village", "baker", "notes", "miller", aftr="0:41")  # call-arg
    memory.items.put("village", "baker", "notes", 3, "value")  # arg-type
    wrong: int = memory.episodic("village", "baker")  # assignment


def local_from_afar(memory: sync.Remote) -> None:
    assert_type(memory.items.get("village", "baker", "notes", "miller", as_of="0:41"), ItemFound)
    memory.items.get("village", "baker", "notes", "miller", as_of=41)  # arg-type
'''


@pytest.mark.usefixtures("in_the_project")
@pytest.mark.parametrize("program", [CALLS, SYNC_CALLS, ANSWERS], ids=["asynchronous", "synchronous", "answers"])
def test_mypy_accepts_right_calls_and_finds_each_wrong_one(program: str, tmp_path: Path) -> None:
    calls = tmp_path / "calls.py"
    calls.write_text(program)
    printed, failure, code = api.run(["--config-file", "pyproject.toml", "--no-pretty", str(calls)])
    assert (failure, code) == ("", 1)
    found = {int(line): rule for line, rule in re.findall(r"calls\.py:(\d+): error: .*\[([\w-]+)\]$", printed, re.M)}
    expected = {
        number: line.rpartition("  # ")[2] for number, line in enumerate(program.splitlines(), 1) if "  # " in line
    }
    assert found == expected, printed


@pytest.fixture
def in_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder whose configuration and cache mypy uses."""
    monkeypatch.chdir(ROOT)
