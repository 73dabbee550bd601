"""Extracts facts from a text, and answers questions from facts."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from recallog.models.facts import extractor, synthesizer
from recallog.models.facts import reactor as extraction
from recallog.models.facts.extractor import ExtractionRequest, FactExtractor
from recallog.models.facts.synthesizer import Synthesizer
from recallog.models.long_term.parameters import ExtractOptions, RetainOptions
from recallog.operations.parameters import After
from recallog.retrieval.channels import FOUR_CHANNEL
from recallog_schemas.errors import ModelFailed
from recallog_schemas.models.facts import limits as facts_limits
from recallog_schemas.models.long_term.views import ExtractedFacts, Retained, Synthesis
from recallog_schemas.views import RecallView

_TYPES = ("fact", "experience")
_INSIGHT = "insight"
_SOURCE = "reflect"

Retain = Callable[..., Awaitable[Retained]]
Recall = Callable[..., Awaitable[RecallView]]


async def extract(
    retain: Retain, given: FactExtractor, request: ExtractionRequest, source: str | None, options: ExtractOptions
) -> ExtractedFacts:
    """Retain the facts in what was said, in their order. If the extractor fails, no facts are retained."""
    try:
        facts = await extractor.ask(given, request)
    except ModelFailed as failed:
        return ExtractedFacts(ids=(), retained=(), failed=failed.reason)
    agent = request.space, request.agent
    payloads = [extraction.payload_of(fact, given) for fact in facts]
    retained = [await retain(*agent, source=source, **payload, **options) for payload in payloads]
    ids = dict.fromkeys(each.id for each in retained if each.id is not None)
    return ExtractedFacts(ids=tuple(ids), retained=tuple(retained), failed=None)


@dataclass(frozen=True, slots=True)
class Question:
    """A question that is answered from the facts and experiences of an agent."""

    space: str
    agent: str
    text: str
    store: bool
    """Whether the answer is kept. An answer without hits is never kept."""
    after: After


async def reflect(recall: Recall, retain: Retain, given: Synthesizer, question: Question) -> Synthesis:
    """Answer a question from facts and experiences.

    The answer is visible only to the agent, even if the space shares its entries: it may quote private entries.
    """
    space, agent = question.space, question.agent
    found = await recall(
        space,
        agent,
        question.text,
        top_k=facts_limits.SYNTHESIS_HITS,
        preset=FOUR_CHANNEL,
        types=_TYPES,
        after=question.after,
    )
    # A broad question may have only weak hits. A model may still find an answer in them.
    hits = [hit for hit in found.hits if not hit.weak] or found.hits
    answer = await synthesizer.ask(given, question.text, hits)
    sources = () if answer == synthesizer.NOTHING else tuple(hit.event.id for hit in hits)
    stored = None
    if question.store and sources:
        options = RetainOptions(source=_SOURCE, based_on=sources, audience=(agent,))
        stored = await retain(space, agent, answer, type=_INSIGHT, **options)
    return Synthesis(
        space=space,
        agent=agent,
        known=found.known,
        generation=found.generation,
        checkpoint=found.checkpoint,
        question=question.text,
        answer=answer,
        sources=sources,
        degraded=found.degraded,
        stored=stored,
    )
