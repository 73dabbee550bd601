"""The files of agents that have hooks for a memory, and their settings, since agents run hooks in another
environment."""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from recallog_agents import spool


def install(home: Path, file: Path, environment: Mapping[str, str]) -> None:
    """Note a file with hooks, and the settings of all hooks."""
    _write(home, {*files(home), str(file.absolute())}, environment)


def uninstall(home: Path, file: Path) -> None:
    """Remove the note of a file, and with the last file the settings. The process that serves the hooks then ends."""
    left = files(home) - {str(file.absolute())}
    if left:
        _write(home, left, environment(home))
    else:
        _file(home).unlink(missing_ok=True)
        with suppress(OSError):  # there is a memory, or unread records of hooks
            for folder in (_file(home).parent, home):
                folder.rmdir()


def environment(home: Path) -> Mapping[str, str]:
    """The settings that were noted; empty if there are none."""
    found = _noted(home).get("environment")
    return {str(name): str(value) for name, value in found.items()} if isinstance(found, dict) else {}


def files(home: Path) -> set[str]:
    """The files that have hooks."""
    found = _noted(home).get("files")
    return set(map(str, found)) if isinstance(found, list) else set()


def _write(home: Path, files: set[str], settings: Mapping[str, str]) -> None:
    file = _file(home)
    for folder in (home, file.parent):
        folder.mkdir(0o700, parents=True, exist_ok=True)
    aside = file.with_suffix(".new")
    aside.touch(0o600)
    aside.write_text(json.dumps({"files": sorted(files), "environment": dict(settings)}, indent=2) + "\n")
    aside.replace(file)


def _noted(home: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        found = json.loads(_file(home).read_bytes())
        if isinstance(found, dict):
            return found
    return {}


def _file(home: Path) -> Path:
    return Path(spool.place(str(home), spool.INSTALLED))
