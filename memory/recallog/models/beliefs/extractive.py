"""A reflector without a model: it quotes the most important events that the agent has seen.

The belief consists of quotes, and the same request always has the same answer. It is about the other agents that it
quotes, and has no stance.
"""

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

from recallog.models.beliefs.reflector import Evidence, ReflectionAnswer, ReflectionRequest, Reflector
from recallog.reactors.asking import one_line
from recallog.reactors.telling import Quotable, choose_telling
from recallog_schemas.shortening import cut

QUOTES_MAX = 3
QUOTE_CHARS_MAX = 200
"""Three in four turns of people who chat are shorter (LoCoMo). Among 120, 160, 200 and 240 characters, this length
shows the evidence of the most questions beyond what the same number of tokens of the newest turns shows (`recallog eval
memory`)."""


class Extractive(Reflector):
    """Quotes the `QUOTES_MAX` most important events, oldest first. Of equally important events, the ones that say most
    are quoted."""

    immediate: ClassVar[bool] = True

    async def reflect(self, request: ReflectionRequest) -> ReflectionAnswer:
        chosen = _most_important(request.evidence)
        things = "last thing" if len(request.evidence) == 1 else f"last {len(request.evidence)} things"
        if chosen:
            quotes = "; ".join(f'"{_quote(evidence)}" ({_source(evidence, request.agent)})' for evidence in chosen)
            belief = f"What is notable in the {things} I know: {quotes}."
        else:
            chosen = request.evidence[-QUOTES_MAX:]
            belief = f"Nothing of the {things} I know can be put into words."
        quoted = Counter(evidence.agent for evidence in chosen if evidence.agent != request.agent)
        about = tuple(agent for agent, _ in quoted.most_common())  # of equally frequent agents, the one quoted first
        return ReflectionAnswer(belief, tuple(evidence.id for evidence in chosen), about)

    async def close(self) -> None:
        """Does nothing: there are no connections."""


def _most_important(evidence: Sequence[Evidence]) -> Sequence[Evidence]:
    """Up to `QUOTES_MAX` events with different quotes, oldest first. Events without words are left out."""
    worded = [event for event in evidence if _quote(event)]
    # A quote of an earlier belief adds nothing new, so beliefs are quoted only if there are no other events.
    seen = [event for event in worded if event.kind != "agent.reflected"] or worded
    chosen = choose_telling([Quotable(_quote(event), event.importance) for event in seen], QUOTES_MAX)
    return [seen[number] for number in chosen]


def _quote(evidence: Evidence) -> str:
    return cut(one_line(evidence.text), QUOTE_CHARS_MAX)


def _source(evidence: Evidence, reader: str) -> str:
    author = "" if evidence.agent == reader else f"{evidence.agent}, "
    date = "" if evidence.date is None else f", {evidence.date}"
    return f"{author}{evidence.kind}, turn {evidence.turn}{date}"
