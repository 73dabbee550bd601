"""The text of a prompt: sections of lines, fitted to a budget.

If the text exceeds the budget, parts of it are shortened or left out, in this order:

1. the evidence of a due reflection: its oldest lines shrink to ids, then they are left out;
2. long lines of RECALLED, ACTION HISTORY, YOUR MEMORY and YOUR BELIEFS: they are cut, at a word, to one common length
   of at least `prompt_limits.PROMPT_LINE_CHARS_MIN` characters of text;
3. long lines of the other sections, likewise; the newest message of a visitor to `limits.PROMPT_MESSAGE_CHARS_MIN`;
4. whole lines, in the order of `Prompt.removable`;
5. the newest message of a visitor, down to `prompt_limits.PROMPT_MESSAGE_CHARS_LEAST`.

The lines of RECALLED, which answer a query, are shortened after the whole lines of the other sections are left out:
they are cut to at least `prompt_limits.PROMPT_ASKED_CHARS_MIN` characters, then the weakest of them are left out. The
last line of each section, and the best `prompt_limits.PROMPT_ASKED_LINES_LEAST` lines of RECALLED, are the last ones to
be left out.

If a step saves more than necessary, lines are made longer again. The identity, working memory, the caller's components
and step, and the form of the answer are never shortened.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace

from recallog_schemas.errors import InvalidArgument
from recallog_schemas.models.prompt import limits as prompt_limits
from recallog_schemas.shortening import cut

_NEXT_LINE, _NEXT_SECTION = "\n", "\n\n"

CountTokens = Callable[[str], int]
"""The number of tokens of a text."""


@dataclass(frozen=True, slots=True, eq=False)
class PromptLine:
    """One line of a section. Two lines are equal only if they are the same object."""

    text: str
    """The part that may be cut."""
    prefix: str = ""
    """The part before the text, which is never cut."""
    offset: int | None = None
    """The offset of the event that it shows, if it shows one."""
    id: str = ""
    """For evidence: the id of its event, with which the line begins."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and its lines. A section without lines is not written."""

    heading: str
    lines: Sequence[PromptLine]


@dataclass(frozen=True, slots=True)
class PromptText:
    """The text of a prompt, and the changes that a budget required."""

    text: str
    dropped: int
    """Number of lines that were left out."""
    shortened: int
    """Number of lines that were cut."""
    offsets: Set[int]
    """The offsets of the events and entries that it shows."""
    sections: Sequence[tuple[str, int, int]]
    """The heading, the start and the end of each section, in characters of `text`."""


@dataclass(frozen=True, slots=True)
class _Concessions:
    """How far each part of a prompt is shortened. None: no line of the part is cut."""

    evidence_steps: int = 0
    """The first steps shrink each line of the evidence to its id, oldest first. The other steps leave the lines out."""
    cheap_chars: int | None = None
    asked_chars: int | None = None
    other_chars: int | None = None
    message_chars: int | None = None
    lines_removed: int = 0


@dataclass(frozen=True, slots=True)
class Prompt:
    """All sections of a prompt, in their order, and which of their lines can be shortened or left out."""

    sections: Sequence[Section]
    cheap: Set[PromptLine] = frozenset()
    """The lines that are cut first."""
    removable: Sequence[PromptLine] = ()
    """The lines that can be cut and left out, in the order in which they are left out."""
    asked: Set[PromptLine] = frozenset()
    """The removable lines that answer the query. When lines are cut, these stay longer than the others."""
    message: PromptLine | None = None
    """The newest message of a visitor: it is cut, but never left out."""
    evidence: Sequence[PromptLine] = ()
    """The evidence of a due reflection, oldest first."""
    evidence_heading: PromptLine | None = None
    """The line above the evidence, which is left out with it."""

    def sections_of(self, offset: int) -> tuple[str, ...]:
        """The headings of the sections that show the event at `offset`."""
        return tuple(
            section.heading for section in self.sections if any(line.offset == offset for line in section.lines)
        )

    def fit(self, budget_tokens: int | None, count: CountTokens) -> PromptText:
        """The text of at most `budget_tokens` tokens, as `count` counts them, and `PROMPT_CHARS_MAX` characters.

        Raises `InvalidArgument`, which names the least budget, if the parts that are never shortened and the beginning
        of the newest message do not fit.
        """

        def has_room(text: str) -> bool:
            within = budget_tokens is None or count(text) <= budget_tokens
            return within and len(text) <= prompt_limits.PROMPT_CHARS_MAX

        whole = self._write_text(_Concessions())
        if has_room(whole.text):
            return whole
        conceded = self._find_concessions(has_room)
        if conceded is not None:
            return self._write_text(conceded)
        least = count(self._write_text(self._most_conceded).text)
        given = "a prompt has" if budget_tokens is None else f"{budget_tokens:,}"
        raise InvalidArgument(
            f"budget_tokens: at least {least:,}, not {given}: the identity, the working memory, "
            "components, the step, the output format and the beginning of a visitor's newest message need them",
            path="budget_tokens",
            rule="greater_than_equal",
        )

    @property
    def _most_conceded(self) -> _Concessions:
        return _Concessions(
            evidence_steps=2 * len(self.evidence),
            cheap_chars=prompt_limits.PROMPT_LINE_CHARS_MIN,
            asked_chars=prompt_limits.PROMPT_LINE_CHARS_MIN,
            other_chars=prompt_limits.PROMPT_LINE_CHARS_MIN,
            message_chars=prompt_limits.PROMPT_MESSAGE_CHARS_LEAST,
            lines_removed=len(self.removable),
        )

    def _find_concessions(self, has_room: Callable[[str], bool]) -> _Concessions | None:
        """The concessions that the budget requires; None if none is enough. The whole text exceeds the budget."""

        def fits(tried: _Concessions) -> bool:
            return has_room(self._write_text(tried).text)

        def fewest(changed: Callable[[int], _Concessions], most: int) -> _Concessions:
            """The concessions with the lowest number that fits. `most` must fit."""
            found = changed(bisect_left(range(most), True, key=lambda number: fits(changed(number))))
            return found if fits(found) else changed(most)  # one character less may be one token more

        def longest(changed: Callable[[int | None], _Concessions], least: int | None) -> _Concessions:
            """The concessions with the lines of one part as long as the budget allows. `least` must fit."""
            if least is None or fits(changed(None)):
                return changed(None)
            longest_line = max((len(line.text) for line in (*self.removable, self.message) if line), default=least)
            longer = range(least + 1, longest_line + 1)
            found = changed(least + bisect_left(longer, True, key=lambda chars: not fits(changed(chars))))
            return found if fits(found) else changed(least)

        steps = 2 * len(self.evidence)
        conceded = _Concessions(evidence_steps=steps)
        if fits(conceded):
            return fewest(lambda number: replace(conceded, evidence_steps=number), steps)
        conceded = replace(conceded, cheap_chars=prompt_limits.PROMPT_LINE_CHARS_MIN)
        if not fits(conceded):
            conceded = replace(
                conceded,
                other_chars=prompt_limits.PROMPT_LINE_CHARS_MIN,
                message_chars=prompt_limits.PROMPT_MESSAGE_CHARS_MIN,
            )
        if not fits(conceded):
            unasked = next((n for n, line in enumerate(self.removable) if line in self.asked), len(self.removable))
            asked_chars = prompt_limits.PROMPT_ASKED_CHARS_MIN if self.asked else None
            without_unasked = replace(conceded, lines_removed=unasked)
            without_lines = replace(conceded, lines_removed=len(self.removable), asked_chars=asked_chars)
            tried = without_unasked if fits(without_unasked) else without_lines
            if fits(tried):
                conceded = fewest(lambda number: replace(tried, lines_removed=number), tried.lines_removed)
            else:
                conceded = self._most_conceded
        if not fits(conceded):
            return None
        short = conceded
        message = longest(lambda chars: replace(short, message_chars=chars), short.message_chars)
        other = longest(lambda chars: replace(message, other_chars=chars), short.other_chars)
        asked = longest(lambda chars: replace(other, asked_chars=chars), short.asked_chars)
        return longest(lambda chars: replace(asked, cheap_chars=chars), short.cheap_chars)

    def _write_text(self, conceded: _Concessions) -> PromptText:
        """The text with these concessions."""
        ids = conceded.evidence_steps
        without_text = set(self.evidence[:ids])
        gone = {*self.removable[: conceded.lines_removed], *self.evidence[: max(ids - len(self.evidence), 0)]}
        dropped = len(gone)
        if self.evidence_heading is not None and gone.issuperset(self.evidence):
            gone.add(self.evidence_heading)
        cut_to: dict[PromptLine, int | None] = dict.fromkeys(self.removable, conceded.other_chars)
        cut_to |= dict.fromkeys(self.cheap, conceded.cheap_chars)
        cut_to |= dict.fromkeys(self.asked, conceded.asked_chars)
        if self.message is not None:
            cut_to[self.message] = conceded.message_chars
        shortened, end, written, places = 0, 0, list[str](), list[tuple[str, int, int]]()
        offsets: set[int] = set()
        for section in self.sections:
            shown = [section.heading] if section.heading else []
            for line in section.lines:
                if line in gone:
                    continue
                chars = cut_to.get(line)
                text = line.text if chars is None else _cut_line(line.text, chars)
                offsets.update(() if line.offset is None else (line.offset,))
                shortened += line in without_text or len(text) < len(line.text)
                lead = f"{line.id} " if line.id else ""
                shown.append(line.id if line in without_text else f"{lead}{line.prefix}{text}")
            if len(shown) > bool(section.heading):
                written.append(_NEXT_LINE.join(shown))
                places.append((section.heading, end, end + len(written[-1])))
                end += len(written[-1]) + len(_NEXT_SECTION)
        return PromptText(_NEXT_SECTION.join(written), dropped, shortened, offsets, places)


def _cut_line(text: str, chars_max: int) -> str:
    """`text` as `cut` shortens it. If it is a quotation of data, it still ends with its mark."""
    is_cut_quotation = text.startswith("«") and text.endswith("»") and len(text) > chars_max
    return f"{cut(text, chars_max - 1)}»" if is_cut_quotation else cut(text, chars_max)
