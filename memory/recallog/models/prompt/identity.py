"""The section IDENTITY of a prompt: the agent's name, its persona, the documents of its workspace that say who it is,
and its goal."""

from collections.abc import Sequence

from recallog.reading.read_session import Snapshot
from recallog_projections.models.items import projection as items
from recallog_projections.tables import RowKey
from recallog_projections.views.settings import AgentSettings
from recallog_schemas.models.prompt import limits as prompt_limits
from recallog_schemas.shortening import cut
from recallog_schemas.views import indent_continuation, indent_lines

DOCUMENTS = ("IDENTITY.md", "SOUL.md")
"""The keys of these documents, in the order in which prompts show them."""
_WORKSPACE = ("workspace",)


def rows(space: str, agent: str) -> list[RowKey]:
    """The rows of these documents."""
    return [RowKey(items.ROWS.name, space, agent, items.path_of(_WORKSPACE, key)) for key in DOCUMENTS]


def lines(snapshot: Snapshot, space: str, agent: str, own: AgentSettings) -> Sequence[str]:
    """The parts of the section. The lines of a text are indented, so that none looks like a heading of the prompt."""
    documents = zip(DOCUMENTS, rows(space, agent), strict=True)
    return [
        f"You are {agent}.",
        *([indent_continuation(own.persona)] if own.persona else []),
        *(f"{name}:\n{indent_lines(text)}" for name, key in documents if (text := _read_document(snapshot, key))),
        *([f"Your goal: {indent_continuation(own.goal)}"] if own.goal else []),
    ]


def _read_document(snapshot: Snapshot, key: RowKey) -> str:
    row = snapshot.row(items.ROWS, *key[1:])
    value = None if row is None else items.value_of(row)
    return cut(value.strip(), prompt_limits.IDENTITY_CHARS_MAX) if isinstance(value, str) else ""
