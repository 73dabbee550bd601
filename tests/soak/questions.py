"""The questions of the load: every operation that only reads, in turn, of all spaces and agents."""

from collections.abc import Mapping, Sequence
from typing import Any

from recallog import Memory, Remote
from soak.load import Load
from soak.story import AGENTS, SPACES, text

_EARLY = "0:50"
"""A past that stays small however long the run is: `as_of` folds the ledger up to there. Questions begin after 100
actions of the writer, so that the ledger has this position even where the writer is slow."""

_TEXT = object()
"""Stands for the text of a question, which differs each time."""
_ANY = object()
"""Stands for the id of an event that the agent may see."""

QUESTIONS: Sequence[tuple[str, Mapping[str, Any]]] = (
    ("timeline", {"limit": 30}),
    ("context", {"query": _TEXT, "budget_tokens": 1200}),
    ("recall", {"query": _TEXT}),
    ("episodic", {}),
    ("explain", {"event_id": _ANY, "query": _TEXT}),
    ("salient", {"query": _TEXT}),
    ("search", {"query": _TEXT}),
    ("around", {"event_id": _ANY}),
    ("entries", {"ids": [_ANY]}),
    ("reflection", {}),
    ("beliefs", {}),
    ("beliefs.graph", {}),
    ("beliefs.contradictions", {}),
    ("agent_settings", {}),
    ("long_term.list", {}),
    ("long_term.lessons", {"query": _TEXT}),
    ("long_term.compare", {"text": _TEXT}),
    ("long_term.stats", {}),
    ("long_term.audit", {}),
    ("long_term.erasures", {}),
    ("recall", {"query": _TEXT, "preset": "hybrid"}),
    ("tiers.retrieve", {"query": _TEXT}),
    ("tiers.stats", {}),
    ("tiers.pressure", {}),
    ("items.list", {"namespace": "notes"}),
    ("workspace.search", {"query": _TEXT}),
    ("working.get", {}),
    ("working.render", {}),
    ("working.scratchpad", {"session": "day-0"}),
    ("consensus.find_similar", {"topic": _TEXT}),
    ("stream.recall", {"query": _TEXT}),
    ("stream.insights", {}),
    ("conversation.messages", {"session": "day-0"}),
    ("timeline", {"as_of": _EARLY}),
    ("recall", {"query": _TEXT, "as_of": _EARLY}),
)
"""Operations of an agent."""
OF_SPACES: Sequence[tuple[str, Mapping[str, Any]]] = (
    ("scene", {"space": SPACES[0]}),
    ("agents", {"space": SPACES[1]}),
    ("sessions", {"space": SPACES[2]}),
    ("resume", {"space": SPACES[0]}),
    ("space", {"space": SPACES[3]}),
    ("kinds", {"space": SPACES[0]}),
    ("pending", {}),
    ("spaces", {}),
    ("catalogue", {}),
    ("admin.status", {}),
)


class Asking:
    """Puts the questions to a memory, in a folder or over HTTP."""

    def __init__(self, memory: Memory | Remote, load: Load) -> None:
        self._memory = memory
        self._load = load
        self._seen = "settings-village-baker"
        self._at: tuple[str, str] = (SPACES[0], AGENTS[0])

    async def act(self, number: int) -> None:
        """Put the question of this number."""
        every = len(QUESTIONS) + len(OF_SPACES)
        if number % every >= len(QUESTIONS):
            operation, given = OF_SPACES[number % every - len(QUESTIONS)]
        else:
            # One agent answers a whole round, so that an id of its timeline can be asked about.
            turn = number // every
            self._at = SPACES[turn % len(SPACES)], AGENTS[turn // len(SPACES) % len(AGENTS)]
            operation, given = QUESTIONS[number % every]
            given = {"space": self._at[0], "agent": self._at[1], **given}
        answer = await self._call(operation, {name: self._value(value, number) for name, value in given.items()})
        self._load.counts["degraded"] += bool(getattr(answer, "degraded", ""))
        if operation == "timeline" and answer.items:
            self._seen = answer.items[-1].event.id
        if operation == "admin.status":
            self._load.figures["events"] = answer.records

    def _value(self, value: Any, number: int) -> Any:
        if isinstance(value, list):
            return [self._value(each, number) for each in value]
        return text(number * 7) if value is _TEXT else self._seen if value is _ANY else value

    async def _call(self, operation: str, arguments: Mapping[str, Any]) -> Any:
        called: Any = self._memory
        for name in operation.split("."):
            called = getattr(called, name)
        return await called(**arguments)
