"""The semantic index on a Qdrant server: `RECALLOG_INDEX=http://host:6333`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recallog.extending import Engine


def open_engine(url: str, deadline_seconds: float) -> "Engine":
    """The engine at a URL, see `ServerEngine`. Qdrant's client is imported when the index is first used."""
    from recallog_qdrant.engine import ServerEngine

    return ServerEngine(url, deadline_seconds=deadline_seconds)
