"""The files of the memory tool: documents of an agent's workspace below `memories`.

The code is asynchronous, and its memory may be synchronous or asynchronous. A synchronous memory answers at once, so
that the coroutines never wait (`finish`).
"""

import posixpath
from collections.abc import Callable, Coroutine, Mapping, Sequence
from inspect import isawaitable
from typing import Any, NamedTuple, TypeVar

from anthropic.tools import ToolError

from recallog import Conflict, InvalidArgument, Refused
from recallog.views import ItemView

ROOT = "/memories"
NAMESPACE = "workspace"
FOLDER = "memories"
LINES_MAX = 999_999
TRIES = 10
"""How often a change is repeated because the file has changed meanwhile."""

Result = TypeVar("Result")

_UNITS = "BKMG"
_WIDTH = len(str(LINES_MAX))


def finish(work: Coroutine[Any, Any, Result]) -> Result:
    """The result of a coroutine that does not wait."""
    try:
        work.send(None)
    except StopIteration as end:
        result: Result = end.value
        return result
    work.close()
    raise RuntimeError("the memory is asynchronous: use AsyncRecallogMemoryTool")


class _File(NamedTuple):
    text: str
    version: int


class MemoryFiles:
    """The commands of the memory tool, on the documents of one agent."""

    def __init__(self, memory: Any, space: str, agent: str) -> None:
        self._memory = memory
        self._of = (space, agent, NAMESPACE)

    async def view(self, path: str, view_range: Sequence[int] | None) -> str:
        key = _key_of(path)
        file = await self._read(key) if key != FOLDER else None
        if file is not None:
            return _shown(path, file.text, view_range)
        below = await self._below(key)
        if not below and key != FOLDER:
            raise ToolError(f"The path {path} does not exist. Please provide a valid path.")
        return _listed(path, {name.removeprefix(f"{key}/"): len(text.encode()) for name, text in below.items()})

    async def create(self, path: str, text: str) -> str:
        key = _key_of(path)
        await self._check_free(key, f"File {path} already exists")
        try:
            await self._call("put", key, text, base=0)
        except Conflict:
            raise ToolError(f"File {path} already exists") from None
        return f"File created successfully at: {path}"

    async def str_replace(self, path: str, old: str, new: str) -> str:
        def changed(text: str) -> str:
            lines = [text.count("\n", 0, at) + 1 for at in _places(text, old)]
            if not lines:
                raise ToolError(f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.")
            if text.count(old) > 1:
                raise ToolError(
                    f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: "
                    f"{', '.join(map(str, lines))}. Please ensure it is unique"
                )
            return text.replace(old, new)

        before, after = await self._change(path, changed)
        changed_line = before.count("\n", 0, before.find(old))
        lines = after.split("\n")
        first = max(0, changed_line - 2)
        shown = _numbered(lines[first : changed_line + 3], first + 1)
        return f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{shown}"

    async def insert(self, path: str, line: int, text: str) -> str:
        def changed(before: str) -> str:
            lines = before.removesuffix("\n").split("\n") if before else []
            if not 0 <= line <= len(lines):
                raise ToolError(
                    f"Invalid `insert_line` parameter: {line}. It should be within the range [0, {len(lines)}]."
                )
            after = "\n".join([*lines[:line], text.rstrip("\n"), *lines[line:]])
            return after if after.endswith("\n") else f"{after}\n"

        await self._change(path, changed)
        return f"The file {path} has been edited."

    async def delete(self, path: str) -> str:
        key = _key_of(path)
        if key == FOLDER:
            raise ToolError("Cannot delete the /memories directory itself")
        found = await self._tree(key)
        if not found:
            raise ToolError(f"The path {path} does not exist")
        for name in found:
            await self._call("delete", name)
        return f"Successfully deleted {path}"

    async def rename(self, old: str, new: str) -> str:
        source, target = _key_of(old), _key_of(new)
        if source == FOLDER:
            raise ToolError("Cannot rename the /memories directory itself")
        if target == FOLDER:
            raise ToolError(f"The destination {new} already exists")
        await self._check_free(target, f"The destination {new} already exists")
        if target.startswith(f"{source}/"):
            raise ToolError(f"Cannot move {old} into itself")
        found = await self._tree(source)
        if not found:
            raise ToolError(f"The path {old} does not exist")
        for name, file in found.items():
            try:  # not `move`, which would replace a file that was created meanwhile
                await self._call("put", f"{target}{name.removeprefix(source)}", file.text, base=0)
                await self._call("delete", name, base=file.version)
            except Conflict:
                raise ToolError(f"{old} or {new} has been changed meanwhile; view both and try again") from None
        return f"Successfully renamed {old} to {new}"

    async def clear(self) -> str:
        for name in await self._below(FOLDER):
            await self._call("delete", name)
        return "All memory cleared"

    async def _change(self, path: str, changed: Callable[[str], str]) -> tuple[str, str]:
        """Change the text of a file. Returns the text before and after the change."""
        key = _key_of(path)
        for _ in range(TRIES):
            file = await self._read(key)
            if file is None:
                if key == FOLDER or await self._below(key):
                    raise ToolError(f"The path {path} is not a file.")
                raise ToolError(f"The path {path} does not exist. Please provide a valid path.")
            after = changed(file.text)
            try:
                await self._call("put", key, after, base=file.version)
            except Conflict:
                continue
            return file.text, after
        raise ToolError(f"{path} is being changed by others all the time; view it and try again")

    async def _check_free(self, key: str, message: str) -> None:
        """Raise `ToolError` if there is a file or a folder at the path, or if the path has a file in place of a
        folder."""
        if await self._tree(key):
            raise ToolError(message)
        parts = key.split("/")
        for end in range(2, len(parts)):
            if await self._read("/".join(parts[:end])) is not None:
                raise ToolError(f"/{'/'.join(parts[:end])} is a file, not a directory")

    async def _tree(self, key: str) -> Mapping[str, _File]:
        """The file with a key, or the files in the folder with this name."""
        file = await self._read(key)
        if file is not None:
            return {key: file}
        return {name: found for name in await self._below(key) if (found := await self._read(name)) is not None}

    async def _read(self, key: str) -> _File | None:
        item = (await self._call("get", key)).item
        return None if item is None else _File(_text_of(item), item.version)

    async def _below(self, key: str) -> Mapping[str, str]:
        """The texts of the files in a folder and its subfolders, by their keys."""
        found: dict[str, str] = {}
        cursor: str | None = None
        while True:
            page = self._memory.items.list(*self._of, limit=200, cursor=cursor)
            page = await page if isawaitable(page) else page
            found |= {item.key: _text_of(item) for item in page.items if item.key.startswith(f"{key}/")}
            cursor = page.next
            if cursor is None:
                return dict(sorted(found.items()))

    async def _call(self, method: str, *arguments: Any, **options: Any) -> Any:
        try:
            answer = getattr(self._memory.items, method)(*self._of, *arguments, **options)
            return await answer if isawaitable(answer) else answer
        except Conflict:
            raise
        except (InvalidArgument, Refused) as error:
            raise ToolError(str(error)) from error


def _key_of(path: str) -> str:
    """The key of the document of a path. Raises `ToolError` for a path that is not below /memories."""
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise ToolError(f"Path must start with /memories, got: {path}")
    resolved = posixpath.normpath(path)
    if resolved != ROOT and not resolved.startswith(f"{ROOT}/"):
        raise ToolError(f"Path {path} would escape /memories directory")
    return resolved.removeprefix("/")


def _text_of(item: ItemView) -> str:
    return item.value if isinstance(item.value, str) else ""


def _places(text: str, part: str) -> list[int]:
    """The places at which a text contains a part, including overlapping ones."""
    if not part:
        return []
    places, at = [], text.find(part)
    while at != -1:
        places.append(at)
        at = text.find(part, at + 1)
    return places


def _shown(path: str, text: str, view_range: Sequence[int] | None) -> str:
    lines = text.split("\n")
    if len(lines) > LINES_MAX:
        raise ToolError(f"File {path} exceeds maximum line limit of 999,999 lines.")
    first, end = 0, len(lines)
    if view_range and len(view_range) == 2:
        first = max(1, view_range[0]) - 1
        end = len(lines) if view_range[1] == -1 else view_range[1]
    return f"Here's the content of {path} with line numbers:\n{_numbered(lines[first:end], first + 1)}"


def _numbered(lines: Sequence[str], first: int) -> str:
    return "\n".join(f"{number:>{_WIDTH}}\t{line}" for number, line in enumerate(lines, first))


def _listed(path: str, sizes: Mapping[str, int]) -> str:
    """The listing of a folder, two levels deep, without hidden names. The size of a folder is that of its files."""
    shown: dict[str, int] = {}
    for name, size in sizes.items():
        parts = name.split("/")
        visible = next((number for number, part in enumerate(parts) if part.startswith(".")), len(parts))
        for depth in (1, 2):
            if depth <= visible and depth <= len(parts):
                entry = "/".join(parts[:depth]) + ("/" if depth < len(parts) else "")
                shown[entry] = shown.get(entry, 0) + size
    header = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"
    lines = [
        f"{_size(sum(sizes.values()))}\t{path}",
        *(f"{_size(shown[name])}\t{path}/{name}" for name in sorted(shown)),
    ]
    return "\n".join([header, *lines])


def _size(count: int) -> str:
    power = min(max(count.bit_length() - 1, 0) // 10, len(_UNITS) - 1)
    size = count / 1024**power
    return f"{int(size)}{_UNITS[power]}" if size == int(size) else f"{size:.1f}{_UNITS[power]}"
