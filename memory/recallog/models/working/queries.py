"""Working memory: the blocks of an agent, as a text, as a document and in prompts; the scratchpads of its sessions."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from recallog.models.working.blocks import WORKING, block_rows, content_of, present, rows_of
from recallog.reading.read_session import Snapshot
from recallog.reading.readings import AgentReading
from recallog.reading.subject import of_agent
from recallog_projections.models.items import projection as items
from recallog_projections.models.items.projection import ItemRow
from recallog_projections.tables import RowKey
from recallog_projections.views import settings
from recallog_projections.views.settings import AgentSettings
from recallog_schemas.kinds import WorkingSettings
from recallog_schemas.models.working.views import Block, BlocksView, WorkingDocument, WorkingText
from recallog_schemas.timestamps import moment_of
from recallog_schemas.views import indent_lines, one_line

_HEADING = "## Working Memory"
_LINE_ENDS = re.compile("[\x85\u2028\u2029]")
"""Characters that end a line for some readers and are not control characters of JSON."""


async def blocks(reading: AgentReading, labels: Sequence[str] | None, session: str | None) -> BlocksView:
    """The blocks of an agent, or the keys of the scratchpad of `session`; with `labels`, only these."""
    space, agent = reading.space, reading.agent
    namespace = WORKING if session is None else items.session_namespace(session)

    async def read(reads: AgentReading) -> BlocksView:
        snapshot, found = await rows_of(reads, space, agent, namespace, labels)
        return BlocksView(
            **await of_agent(reads, snapshot),
            session=session,
            blocks=tuple(
                Block(label=label, content=items.value_of(row), version=row.version, at=moment_of(row.at))
                for label, row in found.items()
            ),
        )

    return await reading.steady(read)


async def render(reading: AgentReading, labels: Sequence[str] | None) -> WorkingText:
    """The blocks of an agent as one text, as prompts show them; with `labels`, only these."""

    space, agent = reading.space, reading.agent

    async def read(reads: AgentReading) -> WorkingText:
        snapshot, found = await rows_of(reads, space, agent, WORKING, labels)
        text = f"{_HEADING}\n{_format_blocks(found)}" if found else ""
        return WorkingText(**await of_agent(reads, snapshot), text=text)

    return await reading.steady(read)


async def document(reading: AgentReading) -> WorkingDocument:
    """The blocks of an agent as one document, cut to the agent's `max_bytes`."""

    space, agent = reading.space, reading.agent

    async def read(reads: AgentReading) -> WorkingDocument:
        snapshot, found = await rows_of(reads, space, agent, WORKING, None)
        whole = document_text({label: items.value_of(row) for label, row in found.items()})
        text = cut(whole, settings_of(snapshot.row(settings.AGENTS, space, agent)).max_bytes)
        return WorkingDocument(
            **await of_agent(reads, snapshot),
            text=text,
            bytes=len(whole.encode()),
            cut=text != whole,
            sha256=items.sha256_of(whole),
        )

    return await reading.steady(read)


def document_text(contents: Mapping[str, Any]) -> str:
    """The document of some blocks: a JSON object of label and content."""
    written = json.dumps(contents, ensure_ascii=False, indent=2)
    return _LINE_ENDS.sub(lambda found: f"\\u{ord(found[0]):04x}", written)


def _format_blocks(found: Mapping[str, ItemRow]) -> str:
    """Blocks with their labels as headings. Contents are indented, so that none of their lines looks like a heading or
    like another section of a prompt."""
    return "\n".join(f"### {one_line(label)}\n{indent_lines(content_of(row))}" for label, row in found.items())


def cut(text: str, bytes_max: int) -> str:
    """`text`, or as many of its characters as fit into `bytes_max` bytes together with a mark that it was cut."""
    data = text.encode()
    if len(data) <= bytes_max:
        return text
    kept = data[: max(0, bytes_max - len(items.CUT_MARK))].decode(errors="ignore")
    return kept + items.CUT_MARK[:bytes_max]


def settings_of(own: AgentSettings | None) -> WorkingSettings:
    """The settings of an agent's working memory, with defaults."""
    return WorkingSettings.model_validate((own.working if own is not None else None) or {})


# The section of a prompt.


def rows(space: str, agent: str, labels: Sequence[str]) -> list[RowKey]:
    """The rows that the section needs, except the agent's settings: `labels` are the blocks that it shows."""
    return [RowKey(items.NAMESPACES.name, space, agent, items.prefix_of(WORKING)), *block_rows(space, agent, labels)]


def labels_shown(snapshot: Snapshot, space: str, agent: str) -> Sequence[str]:
    """The blocks that the prompts of an agent show, by a snapshot of its settings and of `rows`, in their order."""
    set_to = _shown_by(snapshot, space, agent)
    if set_to is None:
        return ()
    listed = snapshot.row(items.NAMESPACES, space, agent, items.prefix_of(WORKING))
    kept = listed.keys if listed is not None else ()
    if set_to.labels is None:
        return kept
    return tuple(label for label in (*set_to.labels, _name_of(agent)) if label in kept)


def offsets_shown(snapshot: Snapshot, space: str, agent: str) -> set[int]:
    """The offsets of the last changes of these blocks."""
    return {row.offset for row in present(snapshot, space, agent, labels_shown(snapshot, space, agent)).values()}


def section(snapshot: Snapshot, space: str, agent: str) -> str | None:
    """The text of the section: the blocks, or a hint if working memory is configured and there are no blocks; None if
    the agent's prompts do not have the section."""
    set_to = _shown_by(snapshot, space, agent)
    if set_to is None:
        return None
    found = present(snapshot, space, agent, labels_shown(snapshot, space, agent))
    if not found:
        own = snapshot.row(settings.AGENTS, space, agent)
        if own is None or own.working is None:
            return None
        return f"(empty; what you write to {_name_of(agent)} is shown here in every turn)"
    if set_to.structured:
        return cut(document_text({label: items.value_of(row) for label, row in found.items()}), set_to.max_bytes)
    return cut(_format_blocks(found), set_to.max_bytes)


# The results of other agents, which the system keeps in the scratchpad of a session.


def result_rows(space: str, agent: str, session: str | None, keys: Sequence[str]) -> list[RowKey]:
    """The rows that a prompt for `session` needs for the results with these keys."""
    if session is None:
        return []
    namespace = items.session_namespace(session)
    listed = RowKey(items.NAMESPACES.name, space, agent, items.prefix_of(namespace))
    return [listed, *block_rows(space, agent, keys, namespace)]


def results_shown(snapshot: Snapshot, space: str, agent: str, session: str | None) -> Sequence[str]:
    """The keys of the results in the scratchpad, by a snapshot of `result_rows`."""
    if session is None:
        return ()
    listed = snapshot.row(items.NAMESPACES, space, agent, items.prefix_of(items.session_namespace(session)))
    return () if listed is None else tuple(key for key in listed.keys if key.startswith(items.RESULTS))


def results(snapshot: Snapshot, space: str, agent: str, session: str | None) -> Mapping[str, str]:
    """The results by key, each in one line."""
    keys = results_shown(snapshot, space, agent, session)
    if session is None or not keys:
        return {}
    found = present(snapshot, space, agent, keys, items.session_namespace(session))
    return {one_line(key): one_line(content_of(row)) for key, row in found.items()}


def _name_of(agent: str) -> str:
    """The name of the block that the hint names. Prompts show it whatever their labels are."""
    return f"{agent}_working_memory"


def _shown_by(snapshot: Snapshot, space: str, agent: str) -> WorkingSettings | None:
    """The settings by which the prompts of an agent show its working memory; None if they do not show it."""
    set_to = settings_of(snapshot.row(settings.AGENTS, space, agent))
    return set_to if set_to.enabled and set_to.auto_inject else None
