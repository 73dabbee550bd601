"""`ingest --follow`: reads files as they grow, until the command is stopped."""

from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

from recallog import Memory
from recallog_schemas.errors import InvalidInput, StorageError, UnknownOutcome
from recallog_service.cli import terminal
from recallog_service.formats import Format
from recallog_service.ingest import IngestedFile
from recallog_service.input_files import files_among
from recallog_service.live_files import changed_files

_FILES_REMEMBERED = 64
"""Files whose written events are remembered in this process. For all others the ledger is asked."""
Read = Callable[..., Awaitable[IngestedFile]]


async def follow_files(
    names: Sequence[str], chosen: Format | None, memory: Memory, read: Read
) -> AsyncIterator[IngestedFile]:
    """The results of files that are new or have changed, if they added something. `read` ingests one file.

    Failed writes are retried. Nothing is stored between two runs: repeated events are recognised by the ledger.
    """
    remembered: OrderedDict[str, set[bytes]] = OrderedDict()
    told: dict[str, frozenset[str]] = {}
    again: list[Path] = []
    written = 0
    for name in names:
        if not Path(name).exists():
            terminal.note(f"{name} does not exist yet; waiting")
    with terminal.bar(f"following {', '.join(names)}") as advance:
        async for changed in changed_files(names):
            paths, again = [*again, *map(Path, changed)], []
            inputs = files_among(paths, chosen)
            for name, error in inputs.refused.items():
                terminal.note(f"{name}: {error}", "red")
            for file in inputs.files:
                seen = remembered.pop(file.name, set())
                try:
                    result = await read(memory, file, seen=seen)
                except InvalidInput as error:
                    terminal.note(f"{file.name}: {error}", "red")
                    continue
                except (StorageError, UnknownOutcome) as error:
                    terminal.note(f"{error}; trying again", "red")
                    again = paths
                    break
                remembered[file.name] = seen
                if len(remembered) > _FILES_REMEMBERED:
                    remembered.popitem(last=False)
                news = tuple(each for each in result.problems if each.message not in told.get(file.name, ()))
                told[file.name] = frozenset(each.message for each in result.problems)
                written += result.added
                advance(written, written)
                if result.added or news:
                    yield result.model_copy(update={"problems": news})
