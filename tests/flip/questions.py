"""The calls of a trial: every operation, and what a memory offers beyond them.

A question has no effect on what the others answer, however often it is called. `REPAIRS` and `WRITES` have.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from flip.story import BATCHES, EVENTS_OF_BATCH, SAID, TOPICS, batches
from recallog import Memory
from recallog.operations import pipeline
from recallog.operations.facade import all_operations
from recallog_schemas import Event, codec

OPERATIONS = all_operations(Memory)
LAST = BATCHES * EVENTS_OF_BATCH - 1
_MIDDLE = f"0:{LAST // 2}"
_V = {"space": "village", "agent": "baker"}
_O = {"space": "office", "agent": "assistant"}
_H = {"space": "harbour", "agent": "pilot"}
_R = {"space": "run-7", "agent": "coder"}
_ASKED = "who owes the miller flour?"


@dataclass(frozen=True, eq=False)
class Question:
    """One call: an operation with arguments, or `ask` for anything else."""

    operation: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    ask: Callable[[Memory, Path], Awaitable[Any]] | None = None
    """`ask(memory, folder)`: a new folder, for what writes elsewhere."""

    @property
    def name(self) -> str:
        """The operation with its arguments."""
        given = ", ".join(f"{name}={_short(value)}" for name, value in self.arguments.items())
        return f"{self.operation}({given})"

    @property
    def by_index(self) -> bool:
        """Whether the answer may depend on the index."""
        operation = OPERATIONS.get(self.operation)
        return operation is not None and (operation.uses_index or operation.maintains_index)

    async def put(self, memory: Memory, folder: Path) -> Any:
        """The answer as JSON has it."""
        if self.ask is not None:
            return await self.ask(memory, folder)
        operation = OPERATIONS[self.operation]
        return json.loads(operation.to_json(await pipeline.call(memory, operation, self.arguments)))


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 30 else text[:29] + "…"


async def _row(memory: Memory, folder: Path) -> Any:
    row = await memory.row(TOPICS, "village", "baker")
    return msgspec.to_builtins(row)


async def _log(memory: Memory, folder: Path) -> Any:
    return msgspec.to_builtins(await memory.log_entries(SAID, "village", newest=20))


async def _export(memory: Memory, folder: Path) -> Any:
    return [[offset, value.decode()] async for batch in memory.admin.records() for offset, value in batch.records]


async def _export_space(memory: Memory, folder: Path) -> Any:
    found = memory.admin.records(space="harbour")
    return [[offset, value.decode()] async for batch in found for offset, value in batch.records]


async def _scan(memory: Memory, folder: Path) -> Any:
    """Whether a word that is in no file is found. What is read depends on what is left of the files."""
    return [each.found for each in (await memory.admin.scan(["quicksilver is in no text"])).found]


async def _activity(memory: Memory, folder: Path) -> Any:
    """How many minutes are shown. Which ones depends on the time of the question."""
    return len((await memory.admin.activity()).minutes)


async def _copy(memory: Memory, folder: Path) -> Any:
    target = folder / "copied"
    report = await memory.admin.copy(str(target))
    async with Memory.open(target) as copied:
        events = [value.decode() async for batch in copied.admin.records() for _, value in batch.records]
    return [report.model_dump(mode="json"), events]


async def _answer_repeats(memory: Memory, folder: Path) -> Any:
    """Publish what is there already: nothing is written, and the first positions are answered."""
    again = [batches()[number][number] for number in range(0, BATCHES, 3)]
    return [str(position) for position in (await memory.publish_many(again)).items]


def _of(operation: str, *several: Mapping[str, Any]) -> Sequence[Question]:
    return [Question(operation, arguments) for arguments in several]


REPEATS = Question("publish_many", {"events": "repeats"}, _answer_repeats)
QUESTIONS: Sequence[Question] = [
    *_of("episodic", _V, _H | {"window": 40}, _O | {"as_of": _MIDDLE}, _V | {"after": f"0:{LAST}"}),
    *_of("timeline", _V | {"limit": 60}, _R | {"kinds": ["tool.used"]}, _O | {"session": "noon", "as_of": _MIDDLE}),
    *_of("history", {"space": "village", "limit": 60}, {"space": "harbour", "containing": "storm"}),
    *_of("around", _V | {"event_id": "e-100"}),
    *_of("lineage", _V | {"event_id": "e-100"}, _V | {"event_id": "e-015", "depth": 1}),
    *_of("diff", _V | {"since": _MIDDLE}, _O | {"since": _MIDDLE, "until": f"0:{LAST}"}),
    *_of("salient", _V | {"query": _ASKED}, _H, _V | {"query": _ASKED, "as_of": _MIDDLE}),
    *_of("recall", _V | {"query": _ASKED}, _H | {"query": "灯塔 storm"}, _O | {"query": "letters", "as_of": _MIDDLE}),
    *_of("search", _V | {"query": _ASKED}),
    *_of("entries", _V | {"ids": [f"e-{number:03d}" for number in range(20, 360, 17)]}),
    *_of("reflection", {"space": "village", "agent": "widow"}, _O),
    *_of("beliefs.graph", _V, {"space": "village", "agent": "smith", "about": "the smith"}),
    *_of("beliefs.contradictions", _V, _O),
    *_of("beliefs", _V, {"space": "village", "agent": "smith", "reader": "baker"}),
    *_of("scene", {"space": "village"}, {"space": "harbour", "as_of": "2026-03-08T00:00:00Z"}),
    *_of("context", _V | {"query": _ASKED, "budget_tokens": 1500}, _H, _R | {"as_of": _MIDDLE}),
    *_of("explain", _V | {"event_id": "e-100", "query": _ASKED}, _V | {"event_id": "e-355"}),
    *_of("agent_settings", _V, _R),
    *_of("long_term.get", _V | {"entry_id": "e-015"}, _V | {"entry_id": "e-027", "as_of": _MIDDLE}),
    *_of("long_term.list", _V, _O | {"order": "priority"}, _H | {"as_of": _MIDDLE}),
    *_of("long_term.entities", _V, _O | {"type": "lesson"}),
    *_of("long_term.about", _V | {"entity": "village"}, _H | {"entity": "miller", "as_of": _MIDDLE}),
    *_of("long_term.lessons", _V | {"query": "what is counted before it is sold?"}),
    *_of("long_term.compare", _V | {"text": "The miller is paid on Fridays."}),
    *_of("long_term.stats", _V, _R),
    *_of("long_term.audit", _V, _O),
    *_of("long_term.erasures", _V, _O),
    *_of("tiers.retrieve", _V | {"query": "what is counted before it is sold?", "strategy": "fast_first"}),
    *_of("tiers.entry", _V | {"entry_id": "e-027"}, _V | {"entry_id": "e-015", "now": "2026-03-20T00:00:00Z"}),
    *_of("tiers.stats", _V, _O | {"as_of": _MIDDLE}),
    *_of("tiers.pressure", _V),
    *_of("items.get", _V | {"namespace": "notes", "key": "day 10"}),
    *_of("items.list", _V, _H | {"namespace": "notes", "as_of": _MIDDLE}),
    *_of("workspace.search", _V | {"query": _ASKED}, _H | {"query": "day", "mode": "fts", "as_of": _MIDDLE}),
    *_of("working.get", _V, _O),
    *_of("working.render", _V),
    *_of("working.document", _R),
    *_of("working.scratchpad", _V | {"session": "noon"}),
    *_of("consensus.list", _V, _O | {"as_of": _MIDDLE}),
    *_of("consensus.find_similar", _V | {"topic": "the eggs of village"}, _O | {"topic": "who counts the barrels"}),
    *_of("consensus.dissents", _V | {"topic": "village the of letters"}, _V | {"topic": "the nets of village"}),
    *_of("stream.recall", _V | {"query": _ASKED}, _H | {"as_of": _MIDDLE}),
    *_of("stream.insights", _V),
    *_of("conversation.messages", _O | {"session": "noon"}, _V | {"session": "noon", "whole": True, "as_of": _MIDDLE}),
    *_of("erase", {"space": "village", "subject": "nobody", "dry_run": True}),
    *_of("pending", {}, {"space": "village"}),
    *_of("spaces", {}),
    *_of("agents", {"space": "village"}),
    *_of("sessions", {"space": "office"}),
    *_of("resume", {"space": "village"}, {"space": "office", "agent": "baker"}),
    *_of("space", {"space": "harbour"}),
    *_of("kinds", {"space": "village"}, {"space": "office", "as_of": _MIDDLE}),
    *_of("catalogue", {}),
    *_of("admin.status", {}),
    Question("admin.activity", ask=_activity),
    *_of("admin.verify", {}, {"what": "views"}),
    *_of("admin.digest", {}),
    Question("admin.scan", ask=_scan),
    *_of("admin.plan_rebuild", {}, {"what": "index"}),
    *_of("admin.abort_rebuild", {}),
    *_of("admin.abort_reindex", {}),
    *_of("admin.dead_letters", {}),
    *_of("admin.dead_letter", {"position": "0:31"}, {"position": "0:45"}),
    Question("admin.copy", ask=_copy),
    Question("row", ask=_row),
    Question("log_entries", ask=_log),
    Question("admin.records", ask=_export),
    Question("admin.records", {"space": "harbour"}, _export_space),
    REPEATS,
]
"""What is asked of a damaged folder, in any order."""

REINDEX = Question("admin.reindex", {"model": "toy"})
REPAIRS: Sequence[Question] = [
    *_of("admin.rebuild", {}, {"what": "index"}),
    *_of("admin.retry_dead_letters", {}),
    *_of("admin.repair", {}),
    REINDEX,
]
"""What computes the views or the index again."""

VERIFY = Question("admin.verify")
NEW = Event(id="e-new", space="village", agent="baker", kind="agent.spoke", payload={"text": "All is well."})


async def _publish(memory: Memory, folder: Path) -> Any:
    """Whether an acknowledged event is at its position."""
    position = await memory.publish(NEW)
    found = [value async for batch in memory.admin.records(position) for _, value in batch.records]
    return [codec.decode(value).id for value in found]


async def _read_back(memory: Memory, folder: Path) -> Any:
    return [shown.event.id for shown in (await memory.timeline("village", "baker", limit=1)).items]


async def _react(memory: Memory, folder: Path) -> Any:
    return [(item.space, item.agent, item.kind) for item in (await memory.react()).items]


async def _extract(memory: Memory, folder: Path) -> Any:
    """The ids of facts are new ones each time."""
    found = await memory.long_term.extract_facts("village", "newcomer", "Acme Corp sells flour. I live in Ulm.")
    return [each.outcome for each in found.retained]


def _writes(operation: str, arguments: Mapping[str, Any]) -> Question:
    """A change by an agent that has nothing yet. Where it is in the ledger depends on what is left of that."""

    async def ask(memory: Memory, folder: Path) -> Any:
        declared = OPERATIONS[operation]
        who = {name: value for name, value in _NEWCOMER.items() if name in declared.parameters}
        answer = await pipeline.call(memory, declared, who | arguments)
        return {name: value for name, value in json.loads(declared.to_json(answer)).items() if name in _SETTLED}

    return Question(operation, arguments, ask)


_SETTLED = frozenset(
    {"outcome", "ids", "changed", "refused", "key", "version", "text", "labels", "seeded", "strength", "superseded_by"}
    | {"answer", "added", "known", "compacted", "kept", "summary", "messages", "removed"}
)
_NEWCOMER = {"space": "village", "agent": "newcomer"}
_TALK = {"session": "talk"}
_PAD = {"session": "noon", "key": "todo"}
_DEBATE = {"topic": "the price of bread", "conclusion": "Two crowns", "confidence": 0.7}
_NOTE = {"namespace": "notes", "key": "flour"}
PUBLISH = Question("publish", ask=_publish)
WRITTEN: Sequence[Question] = [
    Question("timeline", {"limit": 1}, _read_back),
    Question("react", ask=_react),
    _writes("long_term.retain", {"text": "The miller is paid on Fridays.", "entry_id": "m-1"}),
    _writes("long_term.retain", {"text": "Ferries leave the harbour at dawn.", "entry_id": "m-2"}),
    _writes("long_term.update", {"entry_id": "m-1", "priority": "pinned"}),
    _writes("long_term.transfer", {"entry_ids": ["m-2"], "to": "smith"}),
    _writes("long_term.archive", {"entry_id": "m-1"}),
    _writes("long_term.restore", {"entry_id": "m-1"}),
    _writes("tiers.change", {"entry_id": "m-1", "tier": "slow"}),
    _writes("tiers.report_outcome", {"entry_ids": ["m-1"], "success": True}),
    _writes("long_term.grant", {"units": 100}),
    _writes("long_term.retract", {"entry_id": "m-1"}),
    _writes("long_term.forget", {"entry_ids": ["m-1"]}),
    _writes("long_term.seed", {"texts": ["LESSON: ask before you buy anything"]}),
    _writes("long_term.deduplicate", {"apply": True}),
    Question("long_term.extract_facts", ask=_extract),
    _writes(
        "long_term.record_experience",
        {"action_type": "bake", "summary": "Baked rye", "outcome": "sold", "entry_id": "m-3"},
    ),
    _writes("long_term.reflect", {"question": "What does Acme Corp sell?"}),
    _writes("tiers.consolidate", {"now": "2026-04-20T00:00:00Z"}),
    _writes("items.put", _NOTE | {"value": "ten sacks"}),
    _writes("items.append", _NOTE | {"text": " and one"}),
    _writes("items.move", _NOTE | {"to": "grain"}),
    _writes("items.delete", {"namespace": "notes", "key": "grain"}),
    _writes("consensus.record", _DEBATE | {"event_id": "c-1"}),
    _writes("consensus.record", _DEBATE | {"event_id": "c-2", "supersedes": "c-1"}),
    _writes("consensus.record", _DEBATE | {"event_id": "c-3"}),
    _writes("consensus.supersede", {"consensus_id": "c-2", "by": "c-3"}),
    _writes("consensus.dissent", {"content": "Too much", "type": "abstention", "confidence": 1, "topic": "bread"}),
    _writes("stream.summarize", {"store": True, "entry_id": "m-3"}),
    _writes("working.set", {"label": "Goals", "content": "Learn to bake"}),
    _writes("working.append", {"label": "Goals", "text": " bread"}),
    _writes("working.write_document", {"text": '{"Goals": "Bake", "User": "Alice"}'}),
    _writes("working.delete", {"label": "User"}),
    _writes("working.drain", _PAD),
    _writes("start_session", _TALK),
    _writes("configure_agent", {"window": 9}),
    _writes("configure_space", {"scene_kinds": ["world.observed"]}),
    _writes("conversation.add", _TALK | {"messages": [{"role": "user", "content": str(n), "id": n} for n in range(9)]}),
    _writes("conversation.compact", _TALK | {"max_messages": 8, "keep": 4}),
    _writes("conversation.remove", _TALK | {"ids": ["8"]}),
    _writes("conversation.pop", _TALK),
    _writes("conversation.clear", _TALK),
    _writes("conversation.end_turn", _TALK),
    _writes("end_session", _TALK),
]
"""What is called after `PUBLISH`, in this order."""
