"""The questions of a LoCoMo file: each with its text, the agent that asks, and the turns that answer it.

The file is the one that `formats.locomo` reads; each conversation has `qa`, a list of {"question", "evidence":
["D1:3"], "category"}. Categories by number: 1 multi-hop, 2 temporal, 3 open-domain, 4 single-hop, 5 adversarial. The
turns of the conversation are those that `formats.locomo` yields.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from recallog import Event, InvalidEvent
from recallog_eval import locomo

CATEGORIES: Mapping[int, str] = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
ADVERSARIAL = 5
"""Questions about things that were never said. Their figures are reported separately."""

# Errors of the annotators: "D8:6; D9:17" and "D9:1 D4:4" are two ids, "D:11:26" is D11:26, and "D30:05" is D30:5.
_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")


@dataclass(frozen=True, slots=True)
class Question:
    """One question about one conversation."""

    space: str
    number: int
    """Its ordinal in the conversation, from 1. The text does not identify a question: one text occurs twice."""
    asker: str
    """The agent that asks: the first speaker of the conversation. Both speakers remember all turns."""
    text: str
    category: int
    evidence: tuple[str, ...]
    """Ids of the turns that answer it; never empty."""


@dataclass(frozen=True, slots=True)
class Misplaced:
    """A question of one conversation that is asked in another one, which cannot answer it."""

    space: str
    """The other conversation."""
    asker: str
    """Its first speaker."""
    text: str
    renamed: str | None
    """The text with the names of the other conversation's speakers in place of its own speakers; None if it names
    none."""


class Turn(NamedTuple):
    """One turn of a conversation."""

    id: str
    author: str
    text: str


@dataclass(frozen=True, slots=True)
class Questions:
    """The questions of a file that can be measured, and the number of the other ones."""

    asked: tuple[Question, ...]
    turns: Mapping[str, tuple[Turn, ...]]
    """By conversation: its turns in order."""
    speakers: Mapping[str, tuple[str, ...]]
    """By conversation that has questions: its agents, in order of their first turns."""
    skipped: int
    """The number of questions without evidence, or whose evidence is not a turn of their conversation."""
    unresolved: int
    """The number of evidence ids that are not turns. A question with other evidence is measured by the rest."""


def read(text: bytes) -> Questions:
    """The questions of a LoCoMo file, in its order.

    Raises `InvalidEvent` for a file that is not LoCoMo, and for any turn or question that cannot be read, since figures
    of a part of the file would not be comparable.
    """
    turns: dict[str, list[Event]] = {}
    for item in locomo.read(text):
        if item.error is not None:
            raise item.error
        if item.event is not None and item.event.kind == "agent.spoke":
            turns.setdefault(item.event.space, []).append(item.event)
    document = json.loads(text)
    asked: list[Question] = []
    speakers: dict[str, tuple[str, ...]] = {}
    skipped = unresolved = 0
    for sample in document if isinstance(document, list) else [document]:
        spoken = turns.get(sample["sample_id"], [])
        ids = {turn.id for turn in spoken}
        for number, given in enumerate(_questions(sample), 1):
            named = evidence_ids(given.get("evidence") or ())
            evidence = tuple(id_ for id_ in named if id_ in ids)
            unresolved += len(named) - len(evidence)
            if not evidence:
                skipped += 1
                continue
            speakers[sample["sample_id"]] = tuple(dict.fromkeys(turn.agent for turn in spoken))
            asked.append(
                Question(
                    sample["sample_id"], number, spoken[0].agent, given["question"], given["category"], evidence
                )
            )  # fmt: skip
    spoken_turns = {
        space: tuple(Turn(turn.id, turn.agent, turn.text) for turn in spoken) for space, spoken in turns.items()
    }
    return Questions(tuple(asked), spoken_turns, speakers, skipped, unresolved)


def misplaced(asked: Iterable[Question], speakers: Mapping[str, tuple[str, ...]]) -> tuple[Misplaced, ...]:
    """The questions of categories 1 to 4 among `asked`, each in the next conversation of the file.

    Questions of the last conversation are asked in the first. The result is empty if the file has only one
    conversation.
    """
    spaces = list(speakers)
    if len(spaces) == 1:
        return ()
    return tuple(
        _in_space(question, speakers[question.space], other, speakers[other])
        for question in asked
        if question.category != ADVERSARIAL
        for other in [spaces[(spaces.index(question.space) + 1) % len(spaces)]]
    )


def _in_space(question: Question, own: tuple[str, ...], other: str, others: tuple[str, ...]) -> Misplaced:
    names = dict(zip(own, others, strict=False))
    pattern = "|".join(rf"\b{re.escape(name)}\b" for name in names)
    renamed = re.sub(pattern, lambda found: names[found.group()], question.text)
    return Misplaced(other, others[0], question.text, renamed if renamed != question.text else None)


def evidence_ids(given: Iterable[object]) -> tuple[str, ...]:
    """The ids in the annotators' evidence, as turns have them ("D8:6"), each once. Other texts are ignored."""
    found = (match for text in given for match in _EVIDENCE.findall(str(text)))
    return tuple(dict.fromkeys(f"D{int(session)}:{int(turn)}" for session, turn in found))


def _questions(sample: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    questions = sample.get("qa") or []
    if not isinstance(questions, list):
        raise InvalidEvent(f"{sample['sample_id']}: qa is not a list of questions", path="qa")
    for number, given in enumerate(questions, 1):
        if (
            not isinstance(given, dict)
            or not isinstance(given.get("question"), str)
            or not isinstance(given.get("evidence") or [], list)
            or not isinstance(given.get("category"), int)
            or given["category"] not in CATEGORIES
        ):
            raise InvalidEvent(
                f"{sample['sample_id']}: question {number} needs a question, a list of evidence and a category from 1 "
                "to 5",
                path="qa",
            )
        yield given
