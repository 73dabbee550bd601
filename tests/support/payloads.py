"""Payloads of every kind of the catalogue: the least that is accepted."""

from collections.abc import Mapping
from typing import Any

_ITEM = {"namespace": ["working"], "key": "Goals"}
_TEXT = {"text": "The mill burned."}

LEAST: Mapping[str, Mapping[str, Any]] = {
    "run.started": {},
    "world.observed": _TEXT,
    "agent.spoke": _TEXT,
    "agent.thought": _TEXT,
    "oracle.spoke": _TEXT,
    "hypothesis.proposed": _TEXT,
    "clue.found": _TEXT,
    "user.injected": _TEXT,
    "judge.verdict": _TEXT,
    "verdict.final": _TEXT,
    "agent.reflected": {"belief": "The smith did it."},
    "reflection.failed": {"trigger": "t-1", "reason": "the model was down"},
    "agent.configured": {},
    "space.configured": {},
    "tool.used": {"tool": "search"},
    "session.started": {},
    "session.ended": {},
    "clock.ticked": {},
    "consensus.recorded": {
        "topic": "the mill",
        "conclusion": "it was arson",
        "confidence": 0.5,
        "participating": ["baker"],
        "agreeing": [],
    },
    "dissent.recorded": {"topic": "the mill", "type": "risk_warning", "content": "It was hot.", "confidence": 1},
    "consensus.superseded": {"consensus": "c-1", "by": "c-2"},
    "memory.retained": _TEXT,
    "experience.recorded": {"action_type": "search", "summary": "Searched the mill."},
    "memory.updated": {"entry": "e-1", "priority": "pinned"},
    "memory.retracted": {"entry": "e-1"},
    "memory.archived": {"entry": "e-1"},
    "memory.restored": {"entry": "e-1"},
    "memory.erased": {"entries": ["e-1"]},
    "memory.transferred": {"entries": ["e-1"], "to": "miller"},
    "memory.metered": {"units": 10},
    "memory.accessed": {},
    "memory.outcome_reported": {"entries": ["e-1"]},
    "memory.tier_changed": {"entry": "e-1", "to": "slow"},
    "memory.consolidated": {"now": "2026-03-01T12:00:00Z", "ordinal": 0},
    "item.put": _ITEM | {"value": None},
    "item.appended": _ITEM | {"text": ""},
    "item.deleted": _ITEM,
    "item.moved": _ITEM | {"to": "Aims"},
    "item.drained": _ITEM | {"upto": 1},
    "message.added": {"message": {"role": "system", "content": "Be kind."}},
    "message.part": {"message": "e-1", "number": 1, "data": "{}"},
    "conversation.compacted": {"session": "x1", "upto": "e-1", "count": 1, "summary": "They met.", "by": "extractive"},
    "message.removed": {"id": "e-1"},
    "turn.ended": {},
    "reaction.done": {"trigger": "t-1", "events": 0},
    "reaction.failed": {"trigger": "t-1", "reason": "the model was down"},
    "unit.erased": {"unit": "subject", "names": ["alice"], "keys": ["k-1"]},
}
"""By kind: its required fields, or the smallest choice of them."""
