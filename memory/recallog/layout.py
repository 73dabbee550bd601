"""The files of a memory's folder."""

from pathlib import PurePath

LEDGER = "ledger.db"
REACTORS_LOCK = "reactors.lock"
INDEX = PurePath("index")
"""The folder of the semantic index and of the process that serves it."""
INDEX_ROWS = INDEX / "rows.db"
INDEX_ENGINE = INDEX / "engine"
INDEX_LOCK = INDEX / "service.lock"
INDEX_ADDRESS = INDEX / "service.json"
INDEX_LOG = INDEX / "service.log"


def views_file(projection: str = "") -> str:
    """The views of a projection of the user's own; "" names the built-in ones."""
    return f"{_views(projection)}.db"


def views_lock(projection: str = "") -> str:
    """The lock among processes that fold those views."""
    return f"{_views(projection)}.lock"


def _views(projection: str) -> str:
    return f"views-{projection}" if projection else "views"
