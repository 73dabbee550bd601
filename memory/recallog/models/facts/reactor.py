"""The reactor of extractions: extracts facts from a turn, and retains them as entries of the agent whose turn it
was."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from recallog.access import MemoryAccess
from recallog.models.facts import extractor as extractors
from recallog.models.facts import turns
from recallog.models.facts.extractor import ExtractionRequest, Fact, FactExtractor, Utterance
from recallog.models.facts.turns import TurnEvent
from recallog.models.long_term import commands
from recallog.reactors.asking import Sleep
from recallog.reactors.reactor import DueTrigger, Reactor
from recallog_schemas import Event
from recallog_schemas.kinds import trust
from recallog_schemas.models.facts.triggers import EXTRACTION
from recallog_schemas.own_words import own_words
from recallog_schemas.views import Remembered


class Extraction(Reactor):
    """Answers `extraction.due` with one `memory.retained` for each new fact. It costs no units, since no caller
    requested it.

    Facts are visible only to the agent, even if the space shares its entries, unless others said everything in the turn
    to everybody. The sources that a model names are not trusted for this decision.

    If the extractor fails after its retries, the trigger is closed with `reaction.failed`. If a crash interrupts an
    answer, the trigger is closed with the part that was written. The model is not called twice.
    """

    kinds: ClassVar[frozenset[str]] = frozenset({EXTRACTION})

    def __init__(self, access: MemoryAccess, extractor: FactExtractor, sleep: Sleep = asyncio.sleep) -> None:
        self._access = access
        self._extractor = extractor
        self._sleep = sleep
        self.immediate = extractor.immediate

    async def answer(self, trigger: DueTrigger) -> Sequence[Event]:
        turn = await turns.of_trigger(self._access, trigger)
        trigger.read.update(each.shown.position.offset for each in turn)
        seen = {each.shown.event.id: each for each in turn}
        utterances = extractors.bound_utterances([_utterance(each.shown) for each in turn])
        request = ExtractionRequest(trigger.space, trigger.agent, utterances)
        facts = await extractors.ask(self._extractor, request, sleep=self._sleep)
        # The agent sees events of others without an audience because they are shared.
        events = [each.shown.event for each in turn]
        public = all(said.audience is None and said.agent != trigger.agent for said in events)
        audience = None if public else (trigger.agent,)
        retained = [self._event(trigger, fact, seen, audience) for fact in facts]
        return [event for event in retained if event is not None and await commands.would_store(self._access, event)]

    def _event(
        self, trigger: DueTrigger, fact: Fact, seen: Mapping[str, TurnEvent], audience: tuple[str, ...] | None
    ) -> Event | None:
        """The event of a fact. It has the class of its least trusted source, and the person that its sources are about.
        None if they are about several persons: erasing the data of one of them could not reach it."""
        sources = [seen[id_] for id_ in fact.sources]
        subjects = {source.shown.event.subject for source in sources} - {None}
        if len(subjects) > 1:
            return None
        at: dict[str, Any] = {} if trigger.at is None else {"at": trigger.at}
        payload = payload_of(fact, self._extractor)
        payload["metadata"] |= trust.state_class(trust.find_least(source.trust for source in sources))
        return Event(
            space=trigger.space,
            agent=trigger.agent,
            kind="memory.retained",
            turn=trigger.turn,
            session=trigger.session,
            subject=next(iter(subjects), None),
            audience=audience,
            payload=payload | {"sources": list(fact.sources), "cost": 0},
            **at,
        )


def payload_of(fact: Fact, extractor: FactExtractor) -> dict[str, Any]:
    """The fields of the entry that keeps a fact, without those that are None."""
    fields = {"entity": fact.entity, "category": fact.category, "confidence": fact.confidence}
    given = {name: value for name, value in fields.items() if value is not None}
    return {"text": fact.text, "type": "fact", "metadata": {"extractor": extractor.name}, **given}


def _utterance(shown: Remembered) -> Utterance:
    event = shown.event
    return Utterance(own_words(shown.text), event.agent, event.id, event.kind, event.at)
