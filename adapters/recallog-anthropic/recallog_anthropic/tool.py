"""The memory tool `memory_20250818`: Claude's notes in files below /memories, as documents of an agent."""

from typing import TypeAlias

from anthropic.tools.memory import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool
from anthropic.types.beta import (
    BetaCacheControlEphemeralParam,
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818DeleteCommand,
    BetaMemoryTool20250818InsertCommand,
    BetaMemoryTool20250818RenameCommand,
    BetaMemoryTool20250818StrReplaceCommand,
    BetaMemoryTool20250818ViewCommand,
)

from recallog import Memory, Remote, sync
from recallog_anthropic.files import MemoryFiles, finish

SyncMemory: TypeAlias = sync.Memory | sync.Remote
AsyncMemory: TypeAlias = Memory | Remote


class RecallogMemoryTool(BetaAbstractMemoryTool):
    """The memory tool for `Anthropic`, the synchronous client.

    ```python
    with recallog.sync.Memory.open("./memory") as memory:
        tool = RecallogMemoryTool(memory, space="home", agent="claude")
        runner = client.beta.messages.tool_runner(model=…, max_tokens=1024, messages=[…], tools=[tool])
    ```
    """

    def __init__(
        self,
        memory: SyncMemory,
        *,
        space: str,
        agent: str,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._files = MemoryFiles(memory, space, agent)

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """List a folder two levels deep, or show the lines of a file."""
        return finish(self._files.view(command.path, command.view_range))

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Create a file. There must be none at the path."""
        return finish(self._files.create(command.path, command.file_text))

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that a file has once."""
        return finish(self._files.str_replace(command.path, command.old_str, command.new_str))

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert a text after a line of a file; 0: at its beginning."""
        return finish(self._files.insert(command.path, command.insert_line, command.insert_text))

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a file, or a folder with its contents."""
        return finish(self._files.delete(command.path))

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Rename or move a file or a folder. There must be none at the new path."""
        return finish(self._files.rename(command.old_path, command.new_path))

    def clear_all_memory(self) -> str:
        """Delete all files."""
        return finish(self._files.clear())


class AsyncRecallogMemoryTool(BetaAsyncAbstractMemoryTool):
    """The memory tool for `AsyncAnthropic`.

    ```python
    async with Memory.open("./memory") as memory:
        tool = AsyncRecallogMemoryTool(memory, space="home", agent="claude")
        runner = client.beta.messages.tool_runner(model=…, max_tokens=1024, messages=[…], tools=[tool])
    ```
    """

    def __init__(
        self,
        memory: AsyncMemory,
        *,
        space: str,
        agent: str,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._files = MemoryFiles(memory, space, agent)

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """List a folder two levels deep, or show the lines of a file."""
        return await self._files.view(command.path, command.view_range)

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Create a file. There must be none at the path."""
        return await self._files.create(command.path, command.file_text)

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that a file has once."""
        return await self._files.str_replace(command.path, command.old_str, command.new_str)

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert a text after a line of a file; 0: at its beginning."""
        return await self._files.insert(command.path, command.insert_line, command.insert_text)

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a file, or a folder with its contents."""
        return await self._files.delete(command.path)

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Rename or move a file or a folder. There must be none at the new path."""
        return await self._files.rename(command.old_path, command.new_path)

    async def clear_all_memory(self) -> str:
        """Delete all files."""
        return await self._files.clear()
