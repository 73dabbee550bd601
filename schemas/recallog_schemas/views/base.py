"""The base classes of all views, and remembered events."""

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import takewhile
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Protocol, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import to_json

from recallog_schemas import kinds, limits
from recallog_schemas.event import Event, Position
from recallog_schemas.invented_times import is_invented
from recallog_schemas.kinds import Dates, SourceClass
from recallog_schemas.kinds.trust import AGENT, class_of_kind, find_least, is_untrusted, read_stated
from recallog_schemas.lazy_exports import document

if TYPE_CHECKING:
    import pandas

_UNDATED_SPAN = timedelta(hours=24)
"""If the events of one answer span no more than this, their lines carry no dates, unless the agent's settings say
so."""

LossReason = Literal["erased", "retracted", "corrected", "superseded"]
"""Why an event or entry no longer supports what was made from it."""

Item = TypeVar("Item")

_SUBJECT = ("space", "agent")
"""The fields that `repr` shows first."""
_INNER_MARKS = str.maketrans("«»", "\u2039\u203a")
_SHOWN_CHARS_MAX = 60
"""How many characters of a text `repr` shows."""


class View(BaseModel):
    """Base of all views: immutable, and serialised to JSON by `model_dump_json()`."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        super().__pydantic_init_subclass__(**options)
        # pydantic looks up the module of a generic class when the class gets its parameters.
        is_generic = bool(
            cls.__pydantic_generic_metadata__["parameters"] or cls.__pydantic_generic_metadata__["origin"]
        )
        if cls.__module__.startswith("recallog_schemas.") and not is_generic:
            document(cls, "recallog.views")

    def format(self) -> str:
        """The view as text: its fields, one per line; further lines of a text are indented."""
        return "\n".join(f"{name}: {indent_continuation(str(getattr(self, name)))}" for name in type(self).model_fields)

    @property
    def ok(self) -> bool:
        """Whether what was requested was found, done or confirmed. If not, the exit code of a command is 1."""
        return True

    @property
    def empty(self) -> bool:
        """Whether the answer has no content, as for a misspelt name."""
        return False

    def fit(self) -> Self:
        """The view with the items of its list that fit into one answer; see `Bounded`."""
        return self

    def to_frame(self) -> "pandas.DataFrame":
        """The list of the view as a data frame of pandas, which must be installed: one row for each item.

        Fields of a view within an item are columns such as `event.kind`; times have their zone, UTC.

        Raises `TypeError` for a view that has not exactly one list of views.
        """
        from recallog_schemas.views import notebook

        return notebook.frame_of(self)

    def _repr_html_(self) -> str:
        """The view in a cell of a notebook."""
        from recallog_schemas.views import notebook

        return notebook.html_of(self)

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """What `repr` and `str` show: the space and agent, then numbers and short texts; for collections the length.

        Other models and the generation are left out.
        """
        fields = type(self).model_fields.items()
        names = [name for name, field in fields if field.repr and name not in ComputedAt.model_fields]
        for name in sorted(names, key=lambda name: name not in _SUBJECT):
            shown = _short(getattr(self, name))
            if shown is not None:
                yield name, shown


def _short(value: object) -> object:
    """A value as one line shows it; None if it is left out."""
    match value:
        case str():
            line = one_line(value)
            return line if len(line) <= _SHOWN_CHARS_MAX else line[: _SHOWN_CHARS_MAX - 1] + "…"
        case tuple() | list() | dict():
            return len(value)
        case Position() | datetime():
            return str(value)
        case BaseModel():
            return None
        case _:
            return value


class ListView(View, Generic[Item]):
    """A list of views; `len`, indexing and iteration are those of `items`."""

    items: tuple[Item, ...]
    """The items, in the order that the view names."""

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, list_index: int) -> Item:
        return self.items[list_index]

    def __iter__(self) -> Iterator[Item]:  # type: ignore[override]  # a model iterates over its fields
        return iter(self.items)

    def format(self) -> str:
        """The items, one per line; `(nothing)` if there are none."""
        return "\n".join(item.format() if isinstance(item, View) else str(item) for item in self) or "(nothing)"


class PageView(ListView[Item]):
    """A page of a list."""

    next: str | None = None
    """Pass it as `cursor` to get the next page; None on the last one."""

    @classmethod
    def cursor_of(cls, item: Any) -> str:
        """The cursor of the page after an item."""
        raise NotImplementedError

    @classmethod
    def fields_of(cls, following: Sequence[Item], limit: int) -> dict[str, Any]:
        """The fields of the page with the first `limit` of the items that follow its cursor."""
        items = tuple(following[:limit])
        return {"items": items, "next": cls.cursor_of(items[-1]) if len(following) > limit else None}


class Bounded(View):
    """An answer with a list of at most `limits.ANSWER_BYTES_MAX` bytes of JSON."""

    list_field: ClassVar[str]
    """The name of the field with the list."""
    kept: ClassVar[Literal["first", "last"]] = "first"
    """Which items stay if not all fit."""
    items_least: ClassVar[int] = limits.ANSWER_EVENTS_LEAST
    """The number of items that always fit, and are not measured."""
    rest: ClassVar[str] = "request less"
    """How to get the items that are left out."""

    left_out: int = Field(default=0, repr=False, exclude_if=lambda count: count == 0)
    """How many further items did not fit into the answer: a list has at most 4 MiB, and at least one item. Left out
    if there are none."""

    def fit(self) -> Self:
        """The answer with the items of its list that fit."""
        items = getattr(self, self.list_field)
        if len(items) <= self.items_least:
            return self
        best_first = items if self.kept == "first" else items[::-1]
        return self.shorten(fitting(len(json_of(item)) for item in best_first))

    def shorten(self, count: int) -> Self:
        """The answer with at most `count` items of its list, 1 or more. `left_out` includes the others."""
        items = getattr(self, self.list_field)
        if len(items) <= count:
            return self
        rest = items[:count] if self.kept == "first" else items[-count:]
        return self.model_copy(update={self.list_field: rest, "left_out": self.left_out + len(items) - count})


def json_of(value: object) -> bytes:
    """A view, or a value of one, as JSON."""
    return to_json(value)


def fitting(sizes: Iterable[int]) -> int:
    """How many of the first items fit into one answer, by their bytes as JSON. The first one always does."""
    room = Room()
    return sum(1 for _ in takewhile(room.takes, sizes))


class Room:
    """The space for the list of one answer. The first item always fits."""

    def __init__(self) -> None:
        self._taken = 0

    def takes(self, size: int) -> bool:
        """Whether an item of this many bytes fits; if so, it takes the space."""
        if self._taken and self._taken + size > limits.ANSWER_BYTES_MAX:
            return False
        self._taken += size
        return True


class ComputedAt(View):
    """The generation of the views that answered, and the last position it had processed (None: nothing yet)."""

    generation: str
    """The generation of the views that answered."""
    checkpoint: Position | None
    """The last position that it had processed. None: nothing yet."""


class OfSpace(ComputedAt):
    """An answer about one space."""

    space: str
    """The name of the space."""
    known: bool
    """Whether the space has any event. If not, its name may be misspelt."""


class OfAgent(ComputedAt):
    """An answer about one agent of a space."""

    space: str
    """The name of the space."""
    agent: str
    """The name of the agent."""
    known: bool
    """Whether any event of the space is by the agent or addressed to it. If not, a name may be misspelt, or the agent
    has only read what is shared."""
    dates: Dates = Field(default=kinds.AUTOMATIC, repr=False, exclude_if=lambda dates: dates == kinds.AUTOMATIC)
    """Whether lines of events carry dates, by the setting of the reader: "automatic" (where the events of one answer
    span more than 24 hours), "always" or "never". Left out if it is automatic."""

    def lines(self, events: "Iterable[EventLine]") -> list[str]:
        """The lines of `events` for the agent, with dates as it is set; see `event_lines`."""
        return event_lines(events, self.agent, self.dates)

    @property
    def empty(self) -> bool:
        """Whether the answer has no content. If the agent is not `known`, its name may be misspelt."""
        return not any(_has_view(getattr(self, name)) for name in type(self).model_fields)


class OfEvent(OfAgent):
    """An answer to an agent about one event, which it may not be allowed to see."""

    event_id: str
    """The id of the event."""

    @property
    def shows_event(self) -> bool:
        """Whether the answer itself shows that the agent may see the event."""
        raise NotImplementedError

    def conceal(self) -> Self:
        """The answer about an event that does not exist."""
        raise NotImplementedError


def _has_view(value: object) -> bool:
    return isinstance(value, View) or (isinstance(value, tuple) and any(isinstance(item, View) for item in value))


class Labelled:
    """A memory whose text may be from a tool or imported. Lines show such a text as data: labelled and quoted."""

    @property
    def source_class(self) -> SourceClass:
        """The source of its words: "operator", "user", "agent", "tool" or "import"."""
        raise NotImplementedError

    @property
    def source_label(self) -> str:
        """The class as a label in a line; "" if the text is not data."""
        return f"[{self.source_class}]" if is_untrusted(self.source_class) else ""

    def quote_data(self, text: str) -> str:
        """`text` in one line, quoted if it is data."""
        return quote(text) if is_untrusted(self.source_class) else one_line(text)


class Remembered(Labelled, View):
    """One event that an agent may see, with its position and its text."""

    position: Position
    """Its position in the ledger."""
    event: Event
    """The whole event."""
    text: str
    """Its text, by the rule of its kind; "" if it has none."""

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        yield from (("id", self.event.id), ("agent", self.event.agent), ("kind", self.event.kind))
        yield from super().__repr_args__()

    @property
    def at(self) -> datetime:
        """When it happened, in UTC."""
        return self.event.at

    @property
    def source_class(self) -> SourceClass:
        """The class of its kind, or a less trusted one that the event states. Its space may set another one."""
        return find_least((class_of_kind(kinds.kind_of(self.event.kind)), read_stated(self.event.payload)))

    def format(self) -> str:
        """The event as one line that names its author; see `line`."""
        return self.line()

    def line(self, reader: str | None = None, *, dated: bool = False) -> str:
        """The event as one line of a prompt of `reader`: `[turn 003][kind] text`.

        The author is named unless it is the `reader`: `[turn 003][kind][author] text`. With `dated` the date is shown
        unless ingest invented the time: `[turn 003, 2026-03-01][kind] text`.
        The text of a tool or an import is labelled and quoted: `[turn 003][tool.used][tool] «text»`.
        """
        return f"{self.line_prefix(reader, dated=dated)}{self.quote_data(self.text)}"

    def line_prefix(self, reader: str | None = None, *, dated: bool = False, label: str | None = None) -> str:
        """The part of `line` before the text. `label` takes the place of `source_label`."""
        return line_prefix(self.event, reader, dated=dated, label=self.source_label if label is None else label)


class Standing(View):
    """Whether a memory is still current, as far as texts show: a later value of the same thing supersedes it."""

    superseded_by: str | None = None
    """The id of the agent's entry with the current value. None: no later entry disagrees."""
    valid_until: datetime | None = None
    """The time since which the memory is past, in UTC. None: it is not past."""
    contradicts: tuple[str, ...] = ()
    """The ids of other memories of this answer that disagree with it without an order between them: memories of
    other agents, or for other readers."""

    @property
    def note(self) -> str:
        """`past since 2026-03-01`, or `contradicts e-3`; "" if nothing disagrees."""
        if self.valid_until is not None:
            return f"past since {self.valid_until:%Y-%m-%d}"
        return one_line(f"contradicts {', '.join(self.contradicts)}") if self.contradicts else ""

    def labels(self, id_: str) -> str:
        """The note as a label in a line without ids: `[past since 2026-03-01]`, or `[e-2 contradicts e-3]`."""
        note = one_line(f"{id_} {self.note}") if self.contradicts else self.note
        return f"[{note}]" if note else ""


class Sourced(Labelled, View):
    """The source of the words of a memory, by the settings of its space."""

    trust: SourceClass = Field(default=AGENT, repr=False, exclude_if=lambda name: name == AGENT)
    """The source class: "operator", "user", "agent", "tool" or "import". Left out if it is "agent"."""

    @property
    def source_class(self) -> SourceClass:
        """`trust`."""
        return self.trust


class SourcedEvent(Sourced, Remembered):
    """An event with its source class by the settings of its space."""

    @property
    def quoted_text(self) -> str:
        """The whole text with its line breaks, quoted if it is data."""
        return quote_lines(self.text) if is_untrusted(self.trust) else self.text


class EventLine(Protocol):
    """An event that can be shown as one line: `Remembered`, `Preview`."""

    @property
    def at(self) -> datetime: ...
    def line(self, reader: str | None = None, *, dated: bool = False) -> str: ...


class EventHead(Protocol):
    """The part of a line before the text: `Event`, `Preview`."""

    @property
    def turn(self) -> int: ...
    @property
    def at(self) -> datetime: ...
    @property
    def kind(self) -> str: ...
    @property
    def agent(self) -> str: ...


def shown_date(at: datetime, *, dated: bool) -> str | None:
    """The date of an event that happened `at`; None if lines carry no dates, or if ingest invented the time."""
    return f"{at:%Y-%m-%d}" if dated and not is_invented(at) else None


def line_prefix(
    event: EventHead, reader: str | None, *, dated: bool, score: float | None = None, label: str = ""
) -> str:
    """What precedes the text of `event` in a line: `[turn 003, 2026-03-01][kind][author][sal=0.62] `."""
    date = shown_date(event.at, dated=dated)
    moment = f"turn {event.turn:03d}" if date is None else f"turn {event.turn:03d}, {date}"
    author = "" if event.agent == reader else f"[{event.agent}]"
    salience = "" if score is None else f"[sal={score:.2f}]"
    return f"[{moment}][{event.kind}]{author}{salience}{label} "


def are_dated(times: Iterable[datetime], dates: Dates) -> bool:
    """Whether the lines of events that happened at `times` carry dates. Times that ingest invented do not count."""
    if dates != kinds.AUTOMATIC:
        return dates == kinds.ALWAYS
    real = [at for at in times if not is_invented(at)]
    return bool(real) and max(real) - min(real) > _UNDATED_SPAN


def event_lines(events: Iterable[EventLine], reader: str | None, dates: Dates) -> list[str]:
    """The lines of the events of one answer for `reader`; see `Remembered.line`."""
    shown: Sequence[EventLine] = list(events)
    dated = are_dated((event.at for event in shown), dates)
    return [event.line(reader, dated=dated) for event in shown]


def shown_json(value: Any) -> str:
    """A text as it is, and any other JSON value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# Stored texts of agents are shown among headings and lines of Recallog, which a model or a person trusts. None of their
# lines may look like one of these: a text is shown in one line, or its lines are indented.


def count_noun(count: int, one: str, more: str = "") -> str:
    """A number with its noun, for example "1 space" or "2,000 spaces". `more` is the plural, by default with an s."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def one_line(text: str) -> str:
    """`text` without line breaks."""
    return " ".join(text.splitlines())


def quote(text: str) -> str:
    """`text` in one line between marks that it does not contain: they show that it is data."""
    return quote_lines(one_line(text))


def quote_lines(text: str) -> str:
    """As `quote`, with the line breaks of `text`: only for a text that is indented."""
    return f"«{text.translate(_INNER_MARKS)}»"


def indent_lines(text: str) -> str:
    """`text` with all of its lines indented, below a line that says what it is."""
    return "\n".join(f"  {line}" for line in text.splitlines())


def indent_continuation(text: str) -> str:
    """`text` with all of its lines indented except the first one, which continues a line."""
    return "\n  ".join(text.splitlines())
