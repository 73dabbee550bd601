"""The turns of a conversation that a view shows, and the tokens that it takes."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from recallog.views import Remembered
from recallog_schemas.token_estimate import estimate_tokens

QUOTED_SHARE = 0.5
"""The share of a turn's characters, from its beginning, that a text must quote to show the turn."""
QUOTED_CHARS_LEAST = 20
"""The least number of characters that a text must quote. A shorter turn must be quoted completely. Beginnings such as
"Oh, yes" occur in many turns."""


@dataclass(frozen=True)
class Shown:
    """The text of a view, and the turns that it names."""

    view: str
    text: str
    ids: frozenset[str] | None = None
    """The ids that it names. If it is None, the view names no ids, and shows the turns that its text quotes."""

    @cached_property
    def tokens(self) -> int:
        """The estimated number of tokens of the text."""
        return estimate_tokens(self.text)

    @cached_property
    def _one_line(self) -> str:
        return _in_one_line(self.text)

    def find_shown(self, turns: Iterable[str], texts: Mapping[str, str]) -> Set[str]:
        """The ids among `turns` that the view shows. `texts` has the text of each turn."""
        if self.ids is not None:
            return self.ids.intersection(turns)
        return {id_ for id_ in turns if _beginning_of(texts[id_]) in self._one_line}


def show_events(view: str, events: Iterable[Remembered], agent: str) -> Shown:
    """A view of events. A belief among them shows the events that it is based on."""
    shown = list(events)
    based_on = (id_ for each in shown for id_ in each.event.payload.get("based_on", ()))
    lines = "\n".join(each.line(agent) for each in shown)
    return Shown(view, lines, frozenset((*(each.event.id for each in shown), *based_on)))


def show_texts(view: str, texts: Iterable[str]) -> Shown:
    """A view of texts that do not name events."""
    return Shown(view, "\n".join(texts))


@dataclass(frozen=True)
class NewestTurns:
    """The turns of a conversation so far, each as a line of the window."""

    turns: Sequence[Remembered]
    """Oldest first."""
    agent: str

    @cached_property
    def _newest_first(self) -> Sequence[tuple[str, int]]:
        return [(each.event.id, estimate_tokens(f"{each.line(self.agent)}\n")) for each in reversed(self.turns)]

    def within(self, tokens: int) -> frozenset[str]:
        """The ids of the newest turns that fill `tokens`. The last one may exceed them, so that the baseline has an
        advantage."""
        chosen, left = set[str](), tokens
        for id_, cost in self._newest_first:
            if left <= 0:
                break
            chosen.add(id_)
            left -= cost
        return frozenset(chosen)


def _beginning_of(text: str) -> str:
    line = _in_one_line(text)
    return line[: max(QUOTED_CHARS_LEAST, round(len(line) * QUOTED_SHARE))]


def _in_one_line(text: str) -> str:
    return " ".join(text.split())
