"""Import and export of the documents of a workspace.

Every document is read and written separately. An import names the versions that it has read. If another writer changes
a document first, the document is left out, and can be imported again.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from recallog.access import MemoryAccess
from recallog.models.items import commands as changes
from recallog.models.items.commands import ItemAddress
from recallog.models.items.queries import row_key
from recallog.models.workspace import deciding
from recallog.models.workspace import folder as folders
from recallog.models.workspace.folder import FolderState, Unfit
from recallog.operations.parameters import At
from recallog.reading.read_session import RowPage
from recallog.reading.readings import AgentReading, SpaceReading
from recallog.reading.subject import of_agent, snapshot_of
from recallog_projections.models.items import fact_blocks
from recallog_projections.models.items import projection as items
from recallog_projections.models.items.projection import ItemRow
from recallog_schemas import Event, Position
from recallog_schemas.errors import InvalidArgument
from recallog_schemas.models.workspace.views import FileLeftOut, WorkspaceExport, WorkspaceImport

_PART_DOCUMENTS = 64
"""The number of documents that are read, or published, at a time: at most 4 MiB."""
_WHY = {
    "behind": "the document has changed since, and the file has not; export it, or overwrite the document",
    "deleted": "the document was deleted since; delete the file too, or overwrite, which brings the document back",
    "conflict": "the document and the file have both changed since; merge them, and overwrite one of them",
    "file": "the file has changed since, and the document has not; import it, or overwrite the file",
    "foreign": "there is another file of this name, which was never imported or exported; import it, or overwrite it",
}


@dataclass(slots=True)
class _Report:
    """The results so far."""

    new: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    unchanged: int = 0
    left_out: list[FileLeftOut] = field(default_factory=list)
    common: dict[str, str] = field(default_factory=dict)
    """By key: the digest of the text that is now in both the folder and the workspace."""

    def leave_out(self, key: str, unfit: Unfit) -> None:
        self.left_out.append(folders.left_out(key, unfit))

    def has_written(self, key: str, digest: str, *, is_new: bool) -> None:
        (self.new if is_new else self.changed).append(key)
        self.common[key] = digest

    def is_equal(self, key: str, digest: str) -> None:
        self.unchanged += 1
        self.common[key] = digest

    def fields(self, state: FolderState, folder: Path) -> dict[str, Any]:
        return {
            "space": state.space,
            "agent": state.agent,
            "folder": str(folder),
            "new": tuple(self.new),
            "changed": tuple(self.changed),
            "unchanged": self.unchanged,
            "left_out": tuple(self.left_out),
        }


def folder_of(access: MemoryAccess, folder: str | PathLike[str] | None) -> Path:
    """The folder of a call. Raises `InvalidArgument` if neither the call nor the settings name one."""
    if folder is None and access.settings is not None:
        folder = access.settings.workspace
    if folder is None:
        raise InvalidArgument("folder: name a folder, or set RECALLOG_WORKSPACE to one", path="folder", rule="missing")
    return Path(folder)


async def import_folder(
    access: MemoryAccess, space: str, agent: str, folder: Path, *, overwrite: bool
) -> WorkspaceImport:
    """Put the files of a folder into the workspace of an agent, if their texts differ."""
    found = await asyncio.to_thread(folders.files, folder)
    state = await asyncio.to_thread(FolderState.read, folder, space, agent)
    report, position = _Report(left_out=found.left_out), None
    known = {key: (row.sha256, row.version) async for key, row in _documents(access, space, agent)}
    for part in _parts(found.keys):
        events: list[Event] = []
        for key, text in (await asyncio.to_thread(_texts, folder, part, report)).items():
            digest, (document, version) = items.sha256_of(text), known.get(key, (None, 0))
            decision = deciding.on_import(digest, document, state.documents.get(key))
            if decision == "same":
                report.is_equal(key, digest)
            elif decision == "write" or overwrite:
                address = ItemAddress(space, agent, fact_blocks.WORKSPACE, key)
                events.append(changes.event(address, "put", value=text, base=version))
            else:
                report.leave_out(key, Unfit(decision, _WHY["deleted" if document is None else decision]))
        if events:
            position = await _publish_documents(access, events, report)
    await asyncio.to_thread(_keep, state, folder, report)
    return WorkspaceImport(**report.fields(state, folder), position=position)


async def export_folder(
    access: MemoryAccess, space: str, agent: str, folder: Path, *, overwrite: bool
) -> WorkspaceExport:
    """Write the documents of an agent's workspace to files, if their texts differ."""

    async def is_known(reading: AgentReading) -> bool:
        snapshot = await snapshot_of(reading)
        return (await of_agent(reading, snapshot))["known"]

    if folder.exists() and not folder.is_dir():
        raise InvalidArgument(f"folder: {folder} is not a folder", path="folder", rule="folder")
    state = await asyncio.to_thread(FolderState.read, folder, space, agent)
    report = _Report()
    async for key, row in _documents(access, space, agent):
        await asyncio.to_thread(_export, folder, key, row, state, report, overwrite=overwrite)
    if report.new or report.changed or report.unchanged:
        await asyncio.to_thread(_keep, state, folder, report)
    return WorkspaceExport(**report.fields(state, folder), known=await access.of_agent(space, agent, At(), is_known))


def _export(folder: Path, key: str, row: ItemRow, state: FolderState, report: _Report, *, overwrite: bool) -> None:
    text = items.value_of(row)
    try:
        if not isinstance(text, str):
            raise Unfit("not_text", "its value is not a text")
        file, before = folders.digest_of(folder, key), state.documents.get(key)
        decision = deciding.on_export(file, row.sha256, before)
        if decision == "same":
            report.is_equal(key, row.sha256)
        elif decision == "write" or overwrite:
            folders.write(folder, key, text)
            report.has_written(key, row.sha256, is_new=file is None)
        else:
            why = "file" if decision == "behind" else "foreign" if before is None else "conflict"
            raise Unfit(decision, _WHY[why])
    except Unfit as unfit:
        report.leave_out(key, unfit)


async def _publish_documents(access: MemoryAccess, events: Sequence[Event], report: _Report) -> Position:
    rows = [row_key(each.space, each.agent, fact_blocks.WORKSPACE, each.payload["key"]) for each in events]
    verdict = await changes.JUDGE.publish(access, events, rows)
    for event, reasons in zip(events, verdict.reasons, strict=True):
        key, digest = event.payload["key"], items.sha256_of(event.payload["value"])
        path = items.path_of(fact_blocks.WORKSPACE, key)
        if not reasons:
            report.has_written(key, digest, is_new=event.payload["base"] == 0)
        elif (
            row := verdict.snapshot.row(items.ROWS, event.space, event.agent, path)
        ) is not None and row.sha256 == digest:
            report.is_equal(key, digest)  # another import has written it
        else:
            report.leave_out(key, Unfit("conflict", "the document has changed meanwhile; import the folder again"))
    return verdict.position


def _texts(folder: Path, keys: Sequence[str], report: _Report) -> dict[str, str]:
    found = {}
    for key in keys:
        try:
            found[key] = folders.text_of(folder, key)
        except Unfit as unfit:
            report.leave_out(key, unfit)
    return found


def _keep(state: FolderState, folder: Path, report: _Report) -> None:
    """Store the digests that both sides have in common. A document that was left out keeps its former digest."""
    documents: Mapping[str, str] = {**state.documents, **report.common}
    if documents == state.documents:
        return
    try:
        FolderState(state.space, state.agent, documents).write(folder)
    except Unfit as unfit:
        report.leave_out(folders.STATE, unfit)


async def _documents(access: MemoryAccess, space: str, agent: str) -> AsyncIterator[tuple[str, ItemRow]]:
    """The keys and rows of the documents of an agent, in pages."""
    prefix, after = items.prefix_of(fact_blocks.WORKSPACE), None
    while True:

        async def page(reading: SpaceReading, after: str | None = after) -> RowPage[ItemRow]:
            return await reading.page(items.ROWS, space, agent, prefix=prefix, after=after, limit=_PART_DOCUMENTS)

        found = await access.of_space(space, At(), page)
        for path, row in found.items:
            namespace, key = items.names_of(path)
            if tuple(namespace) == fact_blocks.WORKSPACE:
                yield key, row
        if found.next is None:
            return
        after = found.next


def _parts(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(keys), _PART_DOCUMENTS):
        yield keys[start : start + _PART_DOCUMENTS]
