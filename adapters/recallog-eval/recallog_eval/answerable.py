"""Measures whether recall reports that nothing is close, by questions that a memory can and cannot answer.

The file is a list of {"language", "memories": [{"sort", "text"}], "answerable": [{"question", "memory"}],
"unanswerable": [question]}; `memory` is the place, from 0, of the memory that answers.
"""

import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from recallog import Event, InvalidEvent, Memory, Settings
from recallog_projections.index.embedders import registry

RUNS = ("words only", "minilm", "multilingual")
"""No index, or the name of its embedder."""
ALL = "all"
HALVES = ("tuning", "held out")
"""The halves of the questions of a file: those at even places, and those at odd ones."""
_READER, _SPEAKER = "assistant", "user"
_SORTS = {"preference": "preference", "fact": "fact"}
"""The sorts of memories that are entries, with their types. Others are turns of conversations."""
_TURNS = 5
"""The number of turns of a session."""


class Language(NamedTuple):
    """The memories of one user, and questions."""

    name: str
    memories: Sequence[tuple[str, str]]
    """The sorts and the texts of the memories."""
    questions: Sequence[tuple[str, int | None]]
    """The text of each question, and the place of the memory that answers it; None if there is none."""


class Asked(NamedTuple):
    """The answer of recall to a question."""

    language: str
    half: str
    question: str
    is_answerable: bool
    nothing_close: bool
    is_lost: bool
    """Whether the memory that answers is a hit that is marked as weak."""


class Row(NamedTuple):
    """The figures of "nothing close" in one run, for the memories of one language."""

    run: str
    language: str
    half: str
    answerable: int
    unanswerable: int
    precision: float | None
    """The share of questions without an answer among those with nothing close; None if there are none."""
    recall: float | None
    """The share of questions with nothing close among those without an answer."""
    false_alarms: float | None
    """The share of questions with nothing close among those with an answer."""
    lost: float | None
    """The share of questions with an answer whose memory is marked as weak."""


def read(text: bytes) -> list[Language]:
    """The languages of a file. Raises `InvalidEvent`."""
    try:
        return [_language(each) for each in json.loads(text)]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidEvent(f"not a file of answerable questions: {type(error).__name__}: {error}") from None


def _language(found: Mapping[str, Any]) -> Language:
    memories = [(str(each["sort"]), str(each["text"])) for each in found["memories"]]
    known = [(str(each["question"]), int(each["memory"])) for each in found["answerable"]]
    if any(not 0 <= place < len(memories) for _, place in known):
        raise ValueError("a question names a memory that is not there")
    return Language(str(found["language"]), memories, [*known, *((str(each), None) for each in found["unanswerable"])])


async def ask(languages: Iterable[Language], run: str) -> list[Asked]:
    """Ask every question of every language, each language in a separate memory."""
    found = []
    for language in languages:
        with tempfile.TemporaryDirectory(prefix="recallog-eval-", ignore_cleanup_errors=True) as folder:
            found += await _ask(language, run, Path(folder))
    return found


async def _ask(language: Language, run: str, folder: Path) -> list[Asked]:
    given = {"home": folder, "ledger": None, "views": None, "count_accesses": False}
    if run == RUNS[0]:
        async with Memory.open(Settings.valid(**given, index="off")) as memory:
            return await _answers(memory, language, is_indexed=False)
    with closing(registry.embedder(run)) as embedder:
        async with Memory.open(Settings.valid(**given, index="embedded"), embedder=embedder) as memory:
            return await _answers(memory, language, is_indexed=True)


async def _answers(memory: Memory, language: Language, *, is_indexed: bool) -> list[Asked]:
    ids = await _remember(memory, language)
    if is_indexed:
        await memory.catch_up_index()
    found = []
    for place, (question, answer) in enumerate(language.questions):
        view = await memory.recall(language.name, _READER, question, top_k=10)
        weak = {hit.event.id for hit in view.hits if hit.weak}
        is_lost = answer is not None and ids[answer] in weak
        half = HALVES[place % 2]
        found.append(Asked(language.name, half, question, answer is not None, view.nothing_close, is_lost))
    return found


async def _remember(memory: Memory, language: Language) -> list[str]:
    """The ids of the memories, in their order."""
    ids = []
    for place, (sort, text) in enumerate(language.memories):
        if sort in _SORTS:
            kept = await memory.long_term.retain(language.name, _READER, text, type=_SORTS[sort])
            ids.append(str(kept.id))
            continue
        said = Event(
            id=f"{language.name}-{place}", space=language.name, agent=_SPEAKER, kind="agent.spoke", turn=place,
            session=f"session-{place // _TURNS}", audience=(_READER,), payload={"text": text},
        )  # fmt: skip
        await memory.publish(said)
        ids.append(said.id)
    return ids


def rows(run: str, asked: Sequence[Asked]) -> list[Row]:
    """The figures of each language and half, and of all languages."""
    names = list(dict.fromkeys(each.language for each in asked))
    return [
        _row(run, name, half, [each for each in asked if each.half == half and name in (each.language, ALL)])
        for name in (*names, ALL)
        for half in HALVES
    ]


def _row(run: str, language: str, half: str, asked: Sequence[Asked]) -> Row:
    known = [each for each in asked if each.is_answerable]
    others = [each for each in asked if not each.is_answerable]
    alarms = [each for each in asked if each.nothing_close]
    return Row(
        run,
        language,
        half,
        len(known),
        len(others),
        _share(not each.is_answerable for each in alarms),
        _share(each.nothing_close for each in others),
        _share(each.nothing_close for each in known),
        _share(each.is_lost for each in known),
    )


def _share(values: Iterable[bool]) -> float | None:
    found = list(values)
    return sum(found) / len(found) if found else None
