"""Working memory: the blocks of an agent, as rows, as a text and as a document; and the scratchpads of its sessions."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from recallog.queries.items import own_log
from recallog.reading.read_session import ReadSession, Snapshot
from recallog.reading.subject import of_agent
from recallog_projections.tables import RowKey
from recallog_projections.views import items, settings
from recallog_projections.views.items import ItemRow
from recallog_projections.views.settings import AgentSettings
from recallog_schemas import limits
from recallog_schemas.kinds import WorkingSettings
from recallog_schemas.timestamps import moment_of
from recallog_schemas.views import Block, BlocksView, WorkingDocument, WorkingText, one_line
from recallog_schemas.views.base import shown_json

WORKING = (items.WORKING,)
"""The namespace of the blocks."""
_HEADING = "## Working Memory"


async def blocks(
    reading: ReadSession, space: str, agent: str, labels: Sequence[str] | None, session: str | None
) -> BlocksView:
    """The blocks of an agent, or the keys of the scratchpad of `session`; with `labels`, only these."""
    namespace = WORKING if session is None else items.session_namespace(session)

    async def read(reads: ReadSession) -> BlocksView:
        snapshot, found = await rows_of(reads, space, agent, namespace, labels)
        return BlocksView(
            **await of_agent(reads, snapshot, space, agent),
            session=session,
            blocks=tuple(
                Block(label=label, content=items.value_of(row), version=row.version, at=moment_of(row.at))
                for label, row in found.items()
            ),
        )

    return await reading.steady(read)


async def render(reading: ReadSession, space: str, agent: str, labels: Sequence[str] | None) -> WorkingText:
    """The blocks of an agent as one text; with `labels`, only these."""

    async def read(reads: ReadSession) -> WorkingText:
        snapshot, found = await rows_of(reads, space, agent, WORKING, labels)
        shown = [f"### {label}\n{_content(row)}" for label, row in found.items()]
        text = "\n".join([_HEADING, *shown]) if shown else ""
        return WorkingText(**await of_agent(reads, snapshot, space, agent), text=text)

    return await reading.steady(read)


async def document(reading: ReadSession, space: str, agent: str) -> WorkingDocument:
    """The blocks of an agent as one document, cut to the agent's `max_bytes`."""

    async def read(reads: ReadSession) -> WorkingDocument:
        snapshot, found = await rows_of(reads, space, agent, WORKING, None)
        whole = document_text({label: items.value_of(row) for label, row in found.items()})
        text = cut(whole, settings_of(snapshot.row(settings.AGENTS, space, agent)).max_bytes)
        return WorkingDocument(
            **await of_agent(reads, snapshot, space, agent),
            text=text,
            bytes=len(whole.encode()),
            cut=text != whole,
            sha256=items.sha256_of(whole),
        )

    return await reading.steady(read)


async def rows_of(
    reads: ReadSession, space: str, agent: str, namespace: Sequence[str], labels: Sequence[str] | None
) -> tuple[Snapshot, Mapping[str, ItemRow]]:
    """The rows of a namespace whose keys are listed, by key, and the snapshot for `of_agent`. With `labels` only those.

    Two reads, which `ReadSession.steady` makes one.
    """
    prefix = items.prefix_of(namespace)
    snapshot = await reads.snapshot(
        [RowKey(items.NAMESPACES.name, space, agent, prefix), RowKey(settings.AGENTS.name, space, agent)],
        [own_log(space, agent)],
    )
    listed = snapshot.row(items.NAMESPACES, space, agent, prefix)
    keys = [key for key in (listed.keys if listed is not None else ()) if labels is None or key in labels]
    if not keys:
        return snapshot, {}
    addresses = block_rows(space, agent, keys, namespace)
    found = await reads.snapshot(addresses)
    return snapshot, present(found, space, agent, keys, namespace)


def block_rows(space: str, agent: str, labels: Sequence[str], namespace: Sequence[str] = WORKING) -> list[RowKey]:
    """The addresses of the rows of some blocks."""
    return [RowKey(items.ROWS.name, space, agent, items.path_of(namespace, label)) for label in labels]


def present(
    snapshot: Snapshot, space: str, agent: str, labels: Sequence[str], namespace: Sequence[str] = WORKING
) -> Mapping[str, ItemRow]:
    """The rows of some blocks in a snapshot, by label, in the order of `labels`."""
    rows = {label: snapshot.row(items.ROWS, space, agent, items.path_of(namespace, label)) for label in labels}
    return {label: row for label, row in rows.items() if row is not None}


def document_text(contents: Mapping[str, Any]) -> str:
    """The document of some blocks: a JSON object of label and content."""
    return json.dumps(contents, ensure_ascii=False, indent=2)


def cut(text: str, bytes_max: int) -> str:
    """`text`, or as many of its characters as fit into `bytes_max` bytes, and a mark that it was cut."""
    data = text.encode()
    if len(data) <= bytes_max:
        return text
    return data[:bytes_max].decode(errors="ignore") + items.CUT_MARK


def settings_of(own: AgentSettings | None) -> WorkingSettings:
    """The settings of an agent's working memory, with defaults."""
    return WorkingSettings.model_validate((own.working if own is not None else None) or {})


def is_shown(own: AgentSettings) -> bool:
    """Whether prompts show the working memory of an agent with these settings."""
    return own.working is not None and settings_of(own).enabled and settings_of(own).auto_inject


def section(agent: str, own: AgentSettings, found: Mapping[str, ItemRow]) -> str:
    """The text of a prompt's section on working memory: the blocks `found`, or a hint if there are none.

    Contents are indented, so that none of their lines looks like another section.
    """
    if not found:
        return f"(empty; what you write to {agent}_working_memory is shown here in every turn)"
    set_to = settings_of(own)
    if set_to.structured:
        return cut(document_text({label: items.value_of(row) for label, row in found.items()}), set_to.max_bytes)
    lines = []
    for label, row in found.items():
        lines += [f"### {one_line(label)}", *(f"  {line}" for line in _content(row).splitlines())]
    return cut("\n".join(lines), set_to.max_bytes)


def _content(row: ItemRow) -> str:
    return shown_json(items.value_of(row))[: limits.WORKING_BLOCK_CHARS_MAX]
