"""Records what this version of the code writes: a folder, a topic, and the answers to questions about them.

    PYTHONPATH=tests python -m golden.record 0.1.0

writes `recorded/0.1.0/`. Later versions must open it, see `test_recorded_versions`. What is recorded is never written
again; a version that writes something new gets a folder of its own.
"""

import asyncio
import base64
import json
import lzma
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from flip.memories import in_process
from flip.questions import QUESTIONS
from flip.story import START, Topics, batches
from recallog import Event, Memory, Settings
from recallog.index.semantic_index import IndexInProcess
from recallog.operations import pipeline
from recallog.operations.facade import all_operations
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.views import builtin
from recallog_schemas import codec
from recallog_schemas.errors import RecallogError
from recallog_streams import dead_letters, generations
from recallog_streams.ledgers.memory import MemoryLedger
from recallog_streams.projector import Projector
from recallog_streams.verify import verify
from support.payloads import LEAST
from support.toy_embedder import ToyEmbedder

RECORDED = Path(__file__).parent / "recorded"
FOLDER, TOPIC, ANSWERS, DIGESTS = "folder.tar.xz", "topic.jsonl.xz", "answers.json.xz", "digests.json"
_OF_OPERATORS = ("admin.digest", "admin.dead_letters")
"""The questions of operators whose answers do not name what one process has made."""
_BY_CLOCK = ("tiers.stats", "tiers.entry", "tiers.retrieve")
_COMPUTED = ("generation", "checkpoint")
"""Fields of answers that name the state of the views, not what they hold."""
_LATER = datetime(2026, 3, 20, tzinfo=UTC)
_SESSION = [
    {"role": "system", "content": "You sell bread."},
    {"role": "user", "content": "Please remember that I am allergic to nuts."},
    {"role": "assistant", "content": "Noted.", "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "note", "arguments": '{"text": "no nuts"}'}}
    ]},
    {"role": "tool", "tool_call_id": "c1", "content": "saved"},
    {"role": "user", "content": "TODO: order rye flour for Monday."},
    {"role": "assistant", "content": "I have ordered the flour."},
]  # fmt: skip


def settings_of(home: Path, index: str = "off") -> Settings:
    return Settings(home=home, index=index, count_accesses=False)


async def write(home: Path) -> None:
    """Write the memory: the story, every kind, and what every model's commands and reactors write."""
    async with Memory.open(settings_of(home), projections=[Topics()]) as memory:
        for batch in batches():
            await memory.publish_many(batch)
            await memory.catch_up()
        await memory.publish_many(list(_every_kind()))
        await _converse(memory)
        await _keep(memory)
        await _age(memory)
        await memory.react()
        await memory.react()
        report = await memory.admin.verify()
        if report.findings():
            raise SystemExit(report.format())


def _every_kind() -> Iterator[Event]:
    for number, (kind, payload) in enumerate(LEAST.items()):
        yield Event(
            id=f"k-{number:02d}",
            space="kinds",
            agent="baker",
            kind=kind,
            session="x1",
            turn=number,
            payload=dict(payload),
            at=START + timedelta(hours=number),
        )


async def _converse(memory: Memory) -> None:
    wants = {"extract_facts": True, "reflection_threshold": 3, "daily_log": True}
    await memory.publish(_event("chat", "baker", "agent.configured", wants))
    await memory.conversation.add("chat", "baker", "monday", _SESSION)
    await memory.publish(_event("chat", "baker", "turn.ended", {}, session="monday"))
    long = [{"role": ("user", "assistant")[n % 2], "content": f"Message {n} about the oven. " * 40} for n in range(60)]
    await memory.conversation.add("chat", "baker", "tuesday", long)
    await memory.conversation.compact("chat", "baker", "tuesday")
    await memory.conversation.pop("chat", "baker", "monday")
    await memory.working.set("chat", "baker", "Goals", "Sell twelve loaves.")
    await memory.working.set("chat", "baker", "notes", ["LESSON: Rye rests for one hour."], session="monday")
    await memory.publish(_event("chat", "baker", "session.ended", {}, session="monday"))
    await memory.items.put("chat", "baker", "workspace", "recipes/rye.md", "# Rye\n\nOne hour of rest.\n")
    await memory.items.append("chat", "baker", "notes", "log", "opened at six")


async def _keep(memory: Memory) -> None:
    entries = memory.long_term
    for text in ("Alice prefers rye.", "Alice prefers rye", "Bob owes Alice 10 dollars.", "Alice owes Bob 10 dollars."):
        await entries.retain("chat", "baker", text, subject="alice")
    kept = await entries.retain("chat", "baker", "The oven needs 220 degrees.", type="lesson", audience=["miller"])
    await entries.update("chat", "baker", kept.id, text="The oven needs 230 degrees.", priority="pinned")
    gone = await entries.retain("chat", "baker", "The safe opens with 4711.")
    await entries.retain("chat", "baker", "The safe is behind the oven.", based_on=[gone.id])
    await entries.forget("chat", "baker", [gone.id], reason="a secret")
    wrong = await entries.retain("chat", "baker", "The mill is closed on Fridays.")
    await entries.retract("chat", "baker", wrong.id)
    await entries.seed("chat", "apprentice")
    moved = await entries.retain("chat", "baker", "The key hangs behind the door.")
    await entries.transfer("chat", "baker", "apprentice", [moved.id])
    await entries.record_experience("chat", "baker", "bake", "Baked at 250 degrees", outcome="it burned")
    seen = {"participating": ["baker", "miller"], "agreeing": ["baker"]}
    first = await memory.consensus.record("chat", "baker", "the oven", "Keep it at 220.", confidence=0.8, **seen)
    later = {**seen, "supersedes": first.id}
    await memory.consensus.record("chat", "baker", "the oven", "Keep it at 230.", confidence=0.9, **later)
    await memory.consensus.dissent("chat", "miller", "It burns.", type="risk_warning", confidence=0.7, topic="the oven")
    await memory.stream.summarize("village", "baker", START, START + timedelta(days=3), store=True)
    tools = {"capture": {"enabled": True, "tools": ["search"], "max_per_minute": 3}}
    await memory.publish(_event("run-7", "coder", "agent.configured", tools))
    for number in range(8):
        used = {"tool": "search", "arguments": {"query": f"flour {number}"}, "result": {"found": number}, "ok": True}
        await memory.publish(_event("run-7", "coder", "tool.used", used, at=_LATER + timedelta(seconds=number)))


async def _age(memory: Memory) -> None:
    for number in range(40):
        tier = ("fast", "medium", "slow", "glacial")[number % 4]
        text = f"Sack {number} holds {number * 7 % 31} kilograms of flour number {number * number}."
        payload = {"text": text, "tier": tier, "importance": number % 10 / 10, "type": "fact"}
        at = START + timedelta(hours=number)
        await memory.publish(_event("tiers", "baker", "memory.retained", payload, at=at, id=f"t-{number}"))
    used = {"entries": ["t-1", "t-5"], "success": True, "actual": 0.9}
    for _ in range(4):
        await memory.publish(_event("tiers", "baker", "memory.outcome_reported", used, at=START + timedelta(hours=41)))
    for hours in (44, 80, 24 * 9):
        await memory.tiers.consolidate("tiers", "baker", now=START + timedelta(hours=hours))


def _event(space: str, agent: str, kind: str, payload: Mapping[str, Any], **fields: Any) -> Event:
    return Event(space=space, agent=agent, kind=kind, payload=dict(payload), **{"at": _LATER, **fields})


def questions() -> list[tuple[str, dict[str, Any]]]:
    """The names of operations, each with its arguments. None depends on the clock or changes anything."""
    asked = [(each.operation, dict(each.arguments)) for each in QUESTIONS if each.ask is None]
    asked = [(name, arguments) for name, arguments in asked if not name.startswith("admin.") or name in _OF_OPERATORS]
    chat, tiers = {"space": "chat", "agent": "baker"}, {"space": "tiers", "agent": "baker"}
    later = {"now": "2026-03-20T00:00:00Z"}
    of_chat = "episodic salient beliefs reflection context working.get working.render items.list"
    of_entries = "long_term.list long_term.audit long_term.erasures long_term.stats"
    sessions = [{"session": name, "whole": whole} for name in ("monday", "tuesday") for whole in (False, True)]
    asked += [
        *((name, chat) for name in f"{of_chat} {of_entries}".split()),
        *(("timeline", {"space": space, "agent": "baker", "limit": 60}) for space in ("chat", "kinds", "tiers")),
        *(("conversation.messages", chat | session) for session in sessions),
        ("long_term.list", {"space": "chat", "agent": "apprentice"}),
        ("consensus.find_similar", chat | {"topic": "oven"}),
        ("consensus.dissents", chat | {"topic": "the oven"}),
        ("recall", chat | {"query": "what is Alice allergic to?"}),
        ("workspace.search", chat | {"query": "rye rest"}),
        ("working.scratchpad", chat | {"session": "monday"}),
        ("stream.insights", {"space": "village", "agent": "baker"}),
        ("long_term.list", {"space": "run-7", "agent": "coder"}),
        ("long_term.list", tiers),
        ("tiers.stats", tiers),
        ("tiers.pressure", tiers),
        *(("tiers.entry", tiers | {"entry_id": f"t-{number}"}) for number in range(40)),
        ("tiers.retrieve", tiers | {"query": "how much flour?"}),
    ]
    return [(name, arguments | later if name in _BY_CLOCK else arguments) for name, arguments in asked]


async def answers(home: Path, asked: Iterable[tuple[str, Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """The answer to each question, without what names the state of the views."""
    operations, found = all_operations(Memory), []
    async with Memory.open(settings_of(home), projections=[Topics()]) as memory:
        for name, arguments in asked:
            operation = operations[name]
            try:
                answer = without_state(json.loads(operation.to_json(await pipeline.call(memory, operation, arguments))))
            except RecallogError as error:
                answer = {"error": type(error).__name__}
            found.append({"operation": name, "arguments": arguments, "answer": answer})
    return found


def without_state(answer: Any) -> Any:
    """An answer without the fields that name the generation and the checkpoint at which it was computed."""
    if isinstance(answer, dict):
        return {key: without_state(value) for key, value in answer.items() if key not in _COMPUTED}
    return [without_state(each) for each in answer] if isinstance(answer, list) else answer


async def index(home: Path, embedder: ToyEmbedder | None = None) -> None:
    """Let the index of a folder follow its ledger to the end, in this process."""
    async with in_process(home, follow=False, embedder=embedder) as memory:
        in_memory = memory._components.index
        assert isinstance(in_memory, IndexInProcess)
        await (await in_memory.indexer.views(0)).access.active(0, None)


async def digests_of_folder(home: Path) -> dict[str, str]:
    """The digest of every table of the folder's views that has rows."""
    async with Memory.open(settings_of(home), projections=[Topics()]) as memory:
        report = await memory.admin.verify()
        if report.findings():
            raise SystemExit(report.format())
        return {table.table: table.digest for table in report.tables if table.rows}


def topic_of(values: Sequence[bytes]) -> list[bytes]:
    """A partition of a topic: what the folder holds, beside what producers in other languages may write."""
    first = codec.decode(values[0])
    changed = first.model_copy(update={"turn": first.turn + 7})
    return [b"no event", *values, values[5], codec.encode(changed), b"{}", *values[-3:], b'{"id": "a", "envelope": 9}']


async def digests_of_topic(values: Sequence[bytes]) -> dict[str, str]:
    """The digest of every table that a fold of a partition of a topic fills, and of its dead letters."""
    ledger = MemoryLedger(unique_ids=False)
    for value in values:
        ledger.append_bytes(value)
    projector = Projector(ledger, MemoryStore(), builtin.projections())
    active = await generations.current(projector, 0)
    checked = await verify(projector, builtin.projections(), active)
    letters = [f"{each.offset} {each.reason}" for each in await dead_letters.all_dead_letters(projector.store, active)]
    return {table.table: table.digest for table in checked.tables if table.items} | {"reasons": " ".join(letters)}


async def values_of(home: Path) -> list[bytes]:
    """The records of a folder."""
    async with Memory.open(settings_of(home)) as memory:
        return [value async for batch in memory.admin.records() for _, value in batch.records]


def main(version: str) -> None:
    """Record the folder, the topic, the answers and the digests under the name of a version."""
    target = RECORDED / version
    target.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary) / "home"
        asyncio.run(write(home))
        asyncio.run(index(home))
        found = {"folder": asyncio.run(digests_of_folder(home))}
        topic = topic_of(asyncio.run(values_of(home)))
        found["topic"] = asyncio.run(digests_of_topic(topic))
        copied = Path(temporary) / "copied"
        shutil.copytree(home, copied)
        answered = asyncio.run(answers(copied, questions()))
        with tarfile.open(target / FOLDER, "w:xz", preset=9) as packed:
            for path in sorted(each for each in home.rglob("*") if each.is_file() and each.suffix != ".lock"):
                packed.add(path, path.relative_to(home))
    lines = [base64.b64encode(value) for value in topic]
    (target / TOPIC).write_bytes(lzma.compress(b"\n".join(lines), preset=9))
    (target / ANSWERS).write_bytes(lzma.compress(json.dumps(answered, ensure_ascii=False).encode(), preset=9))
    (target / DIGESTS).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
