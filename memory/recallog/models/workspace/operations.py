"""The workspaces of agents: documents that agents and users write, which can be searched and exchanged with a
folder."""

from typing import TYPE_CHECKING, Unpack

from recallog.access import FacadePart
from recallog.models import workspace
from recallog.models.workspace import parameters as workspace_parameters
from recallog.operations import parameters
from recallog.operations.facade import check_arguments, operation
from recallog.operations.operation import GenAi
from recallog.operations.parameters import At
from recallog_schemas.models.workspace import limits as workspace_limits

if TYPE_CHECKING:
    from recallog_schemas.models.workspace.views import WorkspaceExport, WorkspaceHits, WorkspaceImport


class Workspace(FacadePart):
    """Documents that agents keep, a search in them, and their exchange with a folder: `memory.workspace`.

    A document is an item of the namespace `workspace`; its key is its path, for example `memory/2026-11-23.md`.
    `memory.items` reads and writes it. The ledger is the source of truth. Files are an export, which can be edited and
    imported.
    """

    attribute = "workspace"

    @operation(
        example='recallog workspace search village baker "how long are backups kept?"',
        uses_index=True,
        starts_index=("query",),
        gen_ai=GenAi.SEARCH,
        records="hits",
    )
    async def search(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        query: parameters.RecallQuery,
        *,
        limit: parameters.SearchLimit = workspace_limits.WORKSPACE_HITS,
        mode: workspace_parameters.DocumentSearch = "hybrid",
        **at: Unpack[At],
    ) -> "WorkspaceHits":
        """The parts of an agent's documents that match a query best, each with its lines.

        A part begins at a heading and has at most 60 lines. Documents that the index has not processed yet are compared
        by their words. Characters of a query have no special meaning.
        """
        meant = workspace.queries.mode_of(mode)
        return await self._access.of_agent(space, agent, at, workspace.queries.search, query, meant, limit)

    @check_arguments
    async def import_folder(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        folder: workspace_parameters.WorkspaceFolder = None,
        *,
        overwrite: workspace_parameters.Overwrite = False,
    ) -> "WorkspaceImport":
        """Put the files of a folder of this machine into the workspace of an agent. Equal texts write no event.

        Files are left out, and named in the answer, if they are hidden, symbolic links, not in UTF-8, or larger than 64
        KiB, or if their document has changed since the folder was last imported or exported, unless `overwrite` is set.
        A document without a file stays.

        Raises `InvalidArgument` if there is no such folder.
        """
        return await workspace.commands.import_folder(
            self._access, space, agent, workspace.commands.folder_of(self._access, folder), overwrite=overwrite
        )

    @check_arguments
    async def export_folder(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        folder: workspace_parameters.WorkspaceFolder = None,
        *,
        overwrite: workspace_parameters.Overwrite = False,
    ) -> "WorkspaceExport":
        """Write the documents of an agent's workspace to a folder of this machine, without changing a byte.

        Documents are left out, and named in the answer, if their key is not a safe path below the folder, if their
        value is not a text, or if their file has changed since the folder was last imported or exported, unless
        `overwrite` is set. A file without a document stays.

        Raises `InvalidArgument` if the folder is a file.
        """
        return await workspace.commands.export_folder(
            self._access, space, agent, workspace.commands.folder_of(self._access, folder), overwrite=overwrite
        )
