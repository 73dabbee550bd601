"""What installed distributions bring, found among their entry points: adapters, models, formats, commands.

A distribution registers a factory under one of the groups below, with the URL scheme as the entry point's name:

```toml
[project.entry-points."recallog.stores"]
postgres = "my_package:open_store"
```

Adapters and commands are looked for only if their name is not built in, and formats when files are read.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recallog_schemas.errors import SettingsError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

LEDGERS = "recallog.ledgers"
"""`factory(url) -> Ledger`"""
KEYS = "recallog.keys"
"""`factory(url) -> SealingKeys`: where the keys of sealed records are."""
STORES = "recallog.stores"
"""`factory(url, namespace) -> Store`: each namespace holds the views of one group of projections."""
ENGINES = "recallog.engines"
"""`factory(url) -> Engine`"""
MODELS = "recallog.models"
"""`Model`: a memory model of a program's own."""
EMBEDDERS = "recallog.embedders"
"""`factory(name, api_key, deadline_seconds) -> Embedder`"""
FORMATS = "recallog.formats"
"""A `Format` of `recallog_service.formats`."""
COMMANDS = "recallog.commands"
"""`register(app)`: adds the command of that name to a Typer application."""
WRAPPERS = "recallog.wrappers"
"""`wrap(client, **options)`: a client of an API of models that remembers, under the name `clients`."""


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
    return _loaded(found[0])


def load_all(group: str) -> list[Any]:
    """What installed distributions register in `group`, by name. Raises `SettingsError` if it cannot be imported."""
    if not _may_be_registered(group):
        return []
    from importlib.metadata import entry_points

    return [_loaded(each) for each in sorted(entry_points(group=group), key=lambda entry: entry.name)]


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


def _loaded(entry: "EntryPoint") -> Any:
    try:
        return entry.load()
    except (ImportError, AttributeError) as error:
        raise SettingsError(
            f"{entry.name}: {entry.value}, registered in {entry.group}, cannot be imported: {error}"
        ) from error
