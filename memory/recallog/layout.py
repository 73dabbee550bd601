"""The files of a memory's folder."""

from pathlib import PurePath

LEDGER = "ledger.db"
SEALING_KEYS = "sealing.db"
"""The keys of sealed records. A backup of the ledger needs a copy of it."""
KEYS = "keys.json"
"""The keys of the memory's doors."""
KEYS_LOCK = "keys.lock"
"""The lock file of the processes that change keys."""
INDEX = PurePath("index")
"""The folder of the semantic index and of the process that serves it."""
INDEX_ROWS = INDEX / "rows.db"
INDEX_ENGINE = INDEX / "engine"
INDEX_LOCK = INDEX / "service.lock"
INDEX_ADDRESS = INDEX / "service.json"
INDEX_OWNER = INDEX / "owner.json"
"""Names the program that holds `INDEX_LOCK` instead of a service, since it has a custom embedder."""
INDEX_CRASHES = INDEX / "service.crashes"
"""The output of Python when the service crashes in native code."""
INDEX_LOG = INDEX / "service.log"


def views_file(projection: str = "") -> str:
    """The file of the views of a user's projection; "" means the built-in views."""
    return f"{views_name(projection)}.db"


def views_lock(projection: str = "") -> str:
    """The lock file of the processes that fold these views."""
    return lock_file(views_name(projection))


def lock_file(name: str) -> str:
    """The file of a lock of the processes that use the folder."""
    return f"{name}.lock"


def views_name(projection: str) -> str:
    """The name of these views, and of their lock."""
    return f"views-{projection}" if projection else "views"
