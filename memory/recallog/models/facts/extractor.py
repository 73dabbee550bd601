"""The extractor port: extracts atomic facts from texts.

An extractor may be a remote model, so its answers are not trusted. It is called only through `ask`, which returns only
facts that have passed `check_facts`.
"""

import asyncio
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar

from recallog.reactors.asking import Sleep, ask_repeatedly, one_line
from recallog_schemas import limits
from recallog_schemas.models.facts import limits as facts_limits
from recallog_schemas.shortening import cut

_FILLER = re.compile(
    r"\S+ (?:has|is|was|will|plans|wants|needs)\b"
    r".*\b(?:finished|completed|started|done|read|seen|working|going|continue|proceed|ready|happy|glad)\b[a-z ]*"
    r"\b(?:(?:step|task|subtask|todo|part|phase|iteration|round|document|file|log|question|request)s?|it|that|this|help)"
    r"(?: you)?(?: \d+)?(?: now| next| so far| already)?[.!]?"
    r"|.*(?:已经?|正在|完成).*(?:步骤?|任务)(?:\d*)了?[。.]?"
)
"""Reports of progress, such as "assistant has finished step 5.", which are not lasting facts."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """One text from which facts are extracted."""

    text: str
    agent: str
    """Its author: "I" in the text."""
    id: str | None = None
    """The id of its event; None if the text is not an event."""
    kind: str | None = None
    """The kind of its event."""
    at: datetime | None = None
    """When it was said."""


@dataclass(frozen=True, slots=True)
class ExtractionRequest:
    """A request to an extractor: the texts that one agent could see in a turn, or a given text."""

    space: str
    agent: str
    """The agent that keeps the facts."""
    utterances: Sequence[Utterance]
    """Oldest first, at most `limits.EXTRACTED_EVENTS`, with at most `limits.EXTRACTED_CHARS` characters together."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact, in a sentence that can be understood alone."""

    text: str
    entity: str | None = None
    """The person or thing that it is about."""
    category: str | None = None
    """A word that groups facts, such as "preference"."""
    confidence: float | None = None
    """From 0 to 1; None if it was not estimated."""
    sources: Sequence[str] = ()
    """The ids of the events that state it. Empty means all events of the request."""


class FactExtractor(ABC):
    """Extracts facts from texts. Implement it for a model or a custom rule; `ask` calls it."""

    immediate: ClassVar[bool] = False
    """Whether it answers at once, without a model or a server: agents are then answered one after another."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the extractor with its version or model. Facts keep it as `metadata.extractor`."""

    @abstractmethod
    async def extract(self, request: ExtractionRequest) -> Sequence[Fact]:
        """The facts in the texts of `request`. Leave out doubtful facts.

        Raises `ModelFailed` if this request failed, and `ModelMisconfigured` if every request will fail. `ask`
        repeats a request after a temporary failure, and treats any other exception as one.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close connections."""


async def ask(
    extractor: FactExtractor, request: ExtractionRequest, *, attempts: int = 3, sleep: Sleep = asyncio.sleep
) -> Sequence[Fact]:
    """The checked facts of `extractor`, with up to `attempts` attempts if its failures are temporary.

    See `asking.ask_repeatedly`, also for what it raises. The extractor is not called without a text.
    """
    if not request.utterances:
        return []

    async def answer() -> Sequence[Fact]:
        return check_facts(await extractor.extract(request), request)

    return await ask_repeatedly(answer, attempts=attempts, sleep=sleep)


def check_facts(facts: Iterable[Fact], request: ExtractionRequest) -> Sequence[Fact]:
    """The facts in the form of the payloads of entries; idempotent.

    A text is one line of at most `limits.FACT_CHARS_MAX` characters. Facts without a text, repeated texts, and those
    beyond `limits.EXTRACTED_FACTS_MAX` are left out. `sources` has ids of the request, in their order, each once.
    """
    offered = [said.id for said in request.utterances if said.id is not None]
    found: dict[str, Fact] = {}
    for fact in _in_form(facts, offered):
        found.setdefault(fact.text.casefold(), fact)
    return list(found.values())[: facts_limits.EXTRACTED_FACTS_MAX]


def _in_form(facts: Iterable[Fact], offered: Sequence[str]) -> Iterator[Fact]:
    for fact in facts:
        text = cut(one_line(fact.text), facts_limits.FACT_CHARS_MAX)
        if text and not _FILLER.fullmatch(text):
            named = set(fact.sources)
            yield replace(
                fact,
                text=text,
                entity=_label(fact.entity),
                category=_label(fact.category),
                confidence=_share(fact.confidence),
                sources=tuple(dict.fromkeys(id_ for id_ in offered if id_ in named)) or tuple(dict.fromkeys(offered)),
            )


def _label(text: str | None) -> str | None:
    return (one_line(text)[: limits.NAME_CHARS_MAX].strip() or None) if text is not None else None


def _share(number: float | None) -> float | None:
    return None if number is None or math.isnan(number) else min(max(float(number), 0.0), 1.0)


def bound_utterances(utterances: Sequence[Utterance]) -> Sequence[Utterance]:
    """The newest utterances that one extraction reads, oldest first. The oldest of them may be cut."""
    chosen: list[Utterance] = []
    left = facts_limits.EXTRACTED_CHARS
    for said in reversed(utterances[-facts_limits.EXTRACTED_EVENTS :]):
        if left <= 0:
            break
        if said.text.strip():
            chosen.append(replace(said, text=said.text[:left]))
            left -= len(said.text)
    return chosen[::-1]
