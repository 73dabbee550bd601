"""The type of a kind of event: its role, its payload, its text, its importance, and which of its fields are content."""

from dataclasses import dataclass
from typing import Any, Literal

from recallog_schemas.kinds.payload import Payload
from recallog_schemas.text_rules import TextRule, first_of

EpisodeRole = Literal["memory", "action", "visitor"]
"""Where a prompt shows the episodes of a kind besides an agent's memory: nowhere, as the agent's own actions under
ACTION HISTORY, or as words of visitors under VISITOR."""
Role = Literal["memory", "action", "visitor", "entry", "bookkeeping"]
"""What the events of a kind are: episodes (see `EpisodeRole`), which happened to agents and are in their episodic
memory; entries, which an agent keeps on purpose; or bookkeeping, which is not a memory of any agent."""
MEMORY: EpisodeRole = "memory"
ACTION: EpisodeRole = "action"
VISITOR: EpisodeRole = "visitor"
ENTRY: Literal["entry"] = "entry"
BOOKKEEPING: Literal["bookkeeping"] = "bookkeeping"

DEFAULT_IMPORTANCE = 0.5
"""The importance of every kind for which neither the catalogue nor its space sets another one."""

NO_TEXT = first_of()
"""The text rule of events without a text."""


@dataclass(frozen=True, slots=True)
class Kind:
    """The properties of one kind of event."""

    name: str
    description: str
    """A sentence about events of the kind; "" for kinds that the catalogue does not know."""
    payload: type[Payload]
    text: TextRule
    importance: float
    """From 0 to 1: how much the event weighs in salience."""
    shared: bool = False
    """Whether every agent of the space sees its events, unless the space sets it differently."""
    recalled: bool = True
    """Whether recall and search find its events. False for bookkeeping, for texts that only name or close a session,
    and for items, which have a search of their own."""
    schema_version: int = 1
    """The newest version of its payload on the wire, which an event names. An event of a later one is not read here."""
    version: int = 1
    """Raised whenever this definition changes, including the bounds of a payload field. Views that read the kind are
    then rebuilt; if two versions of Recallog use one folder, the older one stops writing."""
    role: Role = MEMORY
    details: TextRule | None = None
    """A longer form of the text, whose exact strings, such as paths and errors, recall finds too; None: the text."""
    content: frozenset[str] | None = None
    """The payload fields that are content: texts, values, and names that people choose. The other fields of the payload
    model are structure: ids, roles, numbers. None: all fields are content."""
    newest_rule: int | None = None
    """The number of the rule by which the fold judges new events of the kind, see `recallog_schemas.rules`. None: the
    fold has only one rule for them."""
    needs: Literal["publish", "forget", "operate"] = "publish"
    """The verb that a key needs besides publish to publish its events: none, forget or operate."""
    moves_time: bool = True
    """Whether the time of an agent follows from its events. False if the memory writes them by itself."""
    owned: bool = False
    """Whether its events change only what their agent has. An audience would not receive the change: publishing refuses
    an event that names one."""
    uncompared: frozenset[str] = frozenset()
    """The payload fields in which two events with one id may differ: the second still counts as a repeat."""
    later: frozenset[str] = frozenset()
    """The payload fields that were added to the kind later. Earlier events may use these names for anything: a value
    that does not fit is left out when a stored event is read."""
    entry: str = ""
    """The field with the id of the entry whose words its events contain: `id`, or a field of the payload. They can be
    erased together. "": they contain none."""

    sources: str = ""
    """The field of the payload with the ids of the events and entries that its events are made from. They are erased
    with them. "": they name none."""

    @property
    def is_episode(self) -> bool:
        """Whether its events are episodes: they are in windows, salience, scenes, and counts of reflection."""
        return self.role != ENTRY and self.role != BOOKKEEPING

    def is_content(self, field: str) -> bool:
        """Whether a payload field is content. A field that is not in the payload model always is."""
        return self.content is None or field in self.content or field not in self.payload.model_fields


def episode(
    name: str,
    description: str,
    payload: type[Payload],
    text: TextRule,
    importance: float,
    content: str = "text",
    **properties: Any,
) -> Kind:
    """A kind of what happens to agents. `content` names the payload fields that are content, separated by spaces."""
    return Kind(name, description, payload, text, importance, content=frozenset(content.split()), **properties)


def entry(
    name: str,
    description: str,
    payload: type[Payload],
    text: TextRule,
    content: str,
    *,
    recalled: bool = True,
    **properties: Any,
) -> Kind:
    """A kind of what an agent keeps on purpose. Its importance is the default one, or 0 if it is not recalled."""
    importance = DEFAULT_IMPORTANCE if recalled else 0.0
    words = frozenset(content.split())
    return Kind(
        name, description, payload, text, importance, recalled=recalled, role=ENTRY, content=words, **properties
    )


def bookkeeping(name: str, description: str, payload: type[Payload], content: str = "", **properties: Any) -> Kind:
    """A kind of bookkeeping, which is not a memory of any agent. It has no text."""
    words = frozenset(content.split())
    return Kind(name, description, payload, NO_TEXT, 0.0, recalled=False, role=BOOKKEEPING, content=words, **properties)
