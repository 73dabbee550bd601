"""What installed distributions provide through their entry points: adapters, models, formats, commands.

A distribution registers a factory under one of the groups below, with the URL scheme as the entry point's name:

```toml
[project.entry-points."recallog.stores"]
postgres = "my_package:open_database"
```

Adapters and commands are searched for only if their name is not built in, and formats when files are read.
"""

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from recallog_schemas import limits
from recallog_schemas.errors import SettingsError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

LEDGERS = "recallog.ledgers"
"""`factory(url, settings) -> Ledger`"""
KEYS = "recallog.keys"
"""`factory(url, settings) -> SealingKeys`: keys of sealed records that are not in a database."""
STORES = "recallog.stores"
"""`factory(url, settings) -> Database`: the stores of views, locks and keys."""
ENGINES = "recallog.engines"
"""`factory(url, settings) -> Engine`"""
MODELS = "recallog.models"
"""`Model`: a custom memory model."""
EMBEDDERS = "recallog.embedders"
"""`factory(name, api_key, deadline_seconds) -> Embedder`"""
FORMATS = "recallog.formats"
"""A `Format` of `recallog_service.formats`."""
COMMANDS = "recallog.commands"
"""`register(app)`: adds the command of that name to a Typer application."""
WRAPPERS = "recallog.wrappers"
"""`wrap(client, **options)`: a client of an API of models that remembers, under the name `clients`."""
TESTING = "recallog.testing"
"""A module: the suites of `recallog.testing.contracts`, under the name `contracts`."""


class EngineSettings(NamedTuple):
    """How an engine on a server stores an index. Values that are None are the server's."""

    replication_factor: int | None = None
    """On how many machines each point is."""
    shard_number: int | None = None
    """Into how many shards points are divided."""
    on_disk: bool = False
    """Whether vectors and their indexes are read from disk, not held in RAM."""
    quantization: Literal["none", "scalar"] = "none"
    """Whether vectors are compared by copies in RAM with 8 bits per number."""
    grpc_port: int | None = None
    """The port at which points are written by gRPC; None: they are written by HTTP."""


class AdapterSettings(NamedTuple):
    """The settings of a memory that each adapter gets."""

    deadline_seconds: float = limits.DEADLINE_SECONDS
    """How long a question waits for a server that does not answer."""
    lock_wait_seconds: float = limits.LOCK_WAIT_SECONDS
    """How long a write waits for another process."""
    telemetry: bool = False
    """Whether OpenTelemetry spans are made."""
    create_ledger: bool = True
    """Whether a ledger that does not exist is created."""
    engine: EngineSettings = EngineSettings()

    @property
    def question_wait_seconds(self) -> float:
        """How long a question waits for a lock: it can be answered without."""
        return min(self.deadline_seconds, self.lock_wait_seconds)


_ENTRY_POINTS = ("*.dist-info/entry_points.txt", "*.egg-info/entry_points.txt")


def scheme_of(url: str) -> str:
    """The part of `url` before the first colon, "" without a colon."""
    scheme, colon, _ = url.partition(":")
    return scheme if colon else ""


def load(group: str, name: str) -> Any | None:
    """What an installed distribution registers under `name` in `group`; None without one.

    Raises `SettingsError` if several distributions register the name, or if what they register cannot be imported.
    """
    if not name:
        return None
    from importlib.metadata import entry_points

    found = list(entry_points(group=group, name=name))
    if not found:
        return None
    if len(found) > 1:
        named = ", ".join(sorted(entry.value for entry in found))
        raise SettingsError(f"{name}: is registered {len(found)} times in {group} ({named}); uninstall all but one")
    return _load_entry(found[0])


def import_object(target: str) -> Any:
    """The object that `module:name` names, as in an entry point. Raises `ModuleNotFoundError`."""
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)


def load_all(group: str) -> list[Any]:
    """What installed distributions register in `group`, by name. Raises `SettingsError` if it cannot be imported."""
    if not _may_be_registered(group):
        return []
    from importlib.metadata import entry_points

    return [_load_entry(each) for each in sorted(entry_points(group=group), key=lambda entry: entry.name)]


def _may_be_registered(group: str) -> bool:
    """Whether an installed distribution may have entry points of `group`: a search in their files, since every program
    asks, and `importlib.metadata` takes a tenth of its start."""
    wanted = group.encode()
    for place in map(Path, sys.path):
        if place.is_file():  # a zip file
            return True
        found = (path for pattern in _ENTRY_POINTS for path in place.glob(pattern))
        if any(wanted in path.read_bytes() for path in found):
            return True
    return False


def _load_entry(entry: "EntryPoint") -> Any:
    try:
        return entry.load()
    except (ImportError, AttributeError) as error:
        raise SettingsError(
            f"{entry.name}: {entry.value}, registered in {entry.group}, cannot be imported: {error}"
        ) from error
