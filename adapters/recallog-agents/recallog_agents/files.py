"""Changes of a client's file: computed, shown, and written in one step, with a backup of the former content."""

import difflib
import os
import shutil
import stat
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recallog import RecallogError
from recallog_agents.clients import Client, Entry, is_ours
from recallog_agents.hook_files import HookFile

_BOM = b"\xef\xbb\xbf"
_BACKUP = "before-recallog"
_WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True)
class Change:
    """The present and the new content of a file."""

    path: Path
    """The file as the user names it; it may be a symbolic link."""
    before: bytes | None
    """None if there is no such file."""
    after: bytes | None
    """None if the file must be removed."""
    restores: Path | None = None
    """The backup from which `after` was read, which the change makes superfluous."""

    @property
    def is_needed(self) -> bool:
        return self.before != self.after

    def diff(self) -> list[str]:
        """The lines of a unified diff."""
        before, after = (_lines(data) for data in (self.before, self.after))
        old, new = ("/dev/null" if data is None else str(self.path) for data in (self.before, self.after))
        return list(difflib.unified_diff(before, after, old, new, lineterm=""))

    def check(self) -> None:
        """Raise `RecallogError` if the file has changed since it was read, or is read-only."""
        target = Path(os.path.realpath(self.path))
        if _content(self.path) != self.before:
            raise RecallogError(f"{self.path} has changed meanwhile, and was left as it is; run the command again")
        if self.before is not None and not (os.access(target, os.W_OK) and target.stat().st_mode & _WRITABLE):
            raise RecallogError(f"{self.path} is read-only; nothing was written. Make it writable first")

    def write(self) -> Path | None:
        """Write the file, and return its backup; None if there was no file, or if an earlier backup is restored.

        The file has either content at any moment. A symbolic link stays one, and the file keeps its permissions.
        Raises the errors of `check`, and `RecallogError` if the file cannot be written.
        """
        self.check()
        target = Path(os.path.realpath(self.path))
        try:
            if self.after is None:
                target.unlink(missing_ok=True)
                _remove_empty(target.parent)
                return None
            target.parent.mkdir(parents=True, exist_ok=True)
            backup = None if self.before is None or self.restores is not None else _backup(target, self.before)
            _replace(target, self.after)
            if self.restores is not None:
                self.restores.unlink(missing_ok=True)
            return backup
        except OSError as error:
            raise RecallogError(f"{self.path} cannot be written: {error.strerror or error}") from None


class Part(ABC):
    """A part of a file: a server, or hooks."""

    title: str
    """The program to which the file belongs."""

    @abstractmethod
    def found_in(self, text: str) -> "Part | None":
        """This part in a text; None if the text does not have it. Raises `RecallogError` if it belongs to another
        program."""

    @abstractmethod
    def put(self, text: str) -> str:
        """The text with this part, which replaces the one that it has."""

    @abstractmethod
    def take(self, text: str, earlier: str) -> str:
        """The text without this part. If lists are then empty, they are kept if an `earlier` text has them."""

    @abstractmethod
    def rest(self, text: str) -> object:
        """Everything in a text except this part. An edit must not change it."""


@dataclass(frozen=True)
class ServerPart(Part):
    """A server in the file of an MCP client."""

    client: Client
    name: str
    entry: Entry | None = None

    @property
    def title(self) -> str:  # type: ignore[override]
        return self.client.title

    def found_in(self, text: str) -> "ServerPart | None":
        servers = self.client.servers(text) if text.strip() else {}
        if self.name not in servers:
            return None
        if not is_ours(servers[self.name]):
            remedy = "it was left as it is; --name selects another name"
            raise RecallogError(f"the server {self.name} in the file is not one of Recallog; {remedy}")
        return ServerPart(self.client, self.name, servers[self.name])

    def put(self, text: str) -> str:
        if self.entry is None:
            return text
        change = self.client.update if self.found_in(text) else self.client.insert
        return change(text, self.name, self.entry)

    def take(self, text: str, earlier: str) -> str:
        return self.client.remove(text, self.name, earlier)

    def rest(self, text: str) -> object:
        return self.client.rest(text, self.name)


@dataclass(frozen=True)
class HooksPart(Part):
    """Hooks in the file of a coding agent."""

    title: str
    file: HookFile
    hooks: Any = None

    def found_in(self, text: str) -> "HooksPart | None":
        found = self.file.present(text)
        return HooksPart(self.title, self.file, found) if found else None

    def put(self, text: str) -> str:
        return self.file.put(text, self.hooks)

    def take(self, text: str, earlier: str) -> str:
        return self.file.take(text, earlier)

    def rest(self, text: str) -> object:
        return self.file.rest(text)


def install(path: Path, parts: Sequence[Part]) -> Change:
    """The change that puts parts into a file, or updates them there.

    Raises `RecallogError`, also if another program's server has the name.
    """
    before = _content(path)
    with _Reading(parts[0].title, path):
        text = changed = _text(before or b"")
        for part in parts:
            part.found_in(changed)
            one_more = part.put(changed)
            _check(part, changed, one_more)
            changed = one_more
    return Change(path, before, before if changed == text else _bytes(changed, before))


def uninstall(path: Path, parts: Sequence[Part]) -> Change:
    """The change that takes parts out of a file. A file without other changes is restored to its former content.

    Raises `RecallogError`.
    """
    before = _content(path)
    if before is None:
        return Change(path, None, None)
    with _Reading(parts[0].title, path):
        text = _text(before)
        found = [each for part in parts if (each := part.found_in(text)) is not None]
        if not found:
            return Change(path, before, before)
        backups = list(_backups(path).values())
        for backup in backups:
            earlier = _content(backup) or b""
            if _is_before(found, earlier, before):
                return Change(path, before, earlier, backup)
        if _is_before(found, None, before):
            return Change(path, before, None)
        changed = text
        for part in found:
            without = part.take(changed, _earlier_text(backups))
            _check(part, changed, without)
            changed = without
        is_left = changed.strip() and not (_is_new(backups, found) and not any(part.rest(changed) for part in parts))
        return Change(path, before, _bytes(changed, before) if is_left else None)


def _is_before(parts: Sequence[Part], earlier: bytes | None, present: bytes) -> bool:
    """Whether a file had these bytes before the parts were added, and nothing else has changed since."""
    with suppress(ValueError, RecallogError):  # it is not in the client's format, or has another server
        text = _text(earlier or b"")
        if any(part.found_in(text) is not None for part in parts):
            return False
        for part in parts:
            text = part.put(text)
        return _bytes(text, earlier) == present
    return False


def _is_new(backups: Sequence[Path], parts: Sequence[Part]) -> bool:
    """Whether a file did not exist before parts were added: its oldest backup, if any, already has them."""
    with suppress(ValueError, RecallogError):
        text = _earlier_text(backups)
        return not backups or any(part.found_in(text) is not None for part in parts)
    return False


def _earlier_text(backups: Sequence[Path]) -> str:
    """The text of the oldest backup, from before the first addition; "" if there is none."""
    with suppress(ValueError):
        return _text(_content(backups[-1]) or b"") if backups else ""
    return ""


class _Reading:
    """Reports how to correct a file that is not in the format of its client."""

    def __init__(self, title: str, path: Path) -> None:
        self._title = title
        self._path = path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, RecallogError):
            raise RecallogError(f"{self._path}: {error}") from None
        if isinstance(error, ValueError | RecursionError):
            message = " ".join(str(error).split())
            raise RecallogError(
                f"{self._path} cannot be read as the configuration of {self._title} and was left as it is: "
                f"{message}. Correct it, or move it away, and run the command again"
            ) from None


def _check(part: Part, before: str, after: str) -> None:
    """Raise `ValueError` if more than a part has changed, since a file may have an unforeseen form."""
    if part.rest(before) != part.rest(after):
        raise ValueError("its form cannot be changed safely; change it by hand")


def _content(path: Path) -> bytes | None:
    try:
        return _read(Path(os.path.realpath(path)))
    except OSError as error:
        raise RecallogError(f"{path} cannot be read: {error.strerror or error}") from None


def _read(target: Path) -> bytes | None:
    try:
        return target.read_bytes()
    except FileNotFoundError:
        return None


def _text(data: bytes) -> str:
    return data.removeprefix(_BOM).decode()


def _bytes(text: str, before: bytes | None) -> bytes:
    """The bytes of a text in the style of the present bytes: with their byte order mark and line ends."""
    data = text.encode()
    if before is not None and before.count(b"\n") == before.count(b"\r\n") > 0:
        data = data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    return _BOM + data if before is not None and before.startswith(_BOM) else data


def _lines(data: bytes | None) -> list[str]:
    return [] if data is None else data.decode(errors="replace").splitlines()


def _backups(path: Path) -> Mapping[int, Path]:
    """The backups of a file by their numbers, the newest first."""
    target = Path(os.path.realpath(path))
    start = f"{target.name}.{_BACKUP}-"
    beside = target.parent.iterdir() if target.parent.is_dir() else ()
    found = {each.name.removeprefix(start): each for each in beside if each.name.startswith(start)}
    numbers = sorted((int(number) for number in found if number.isascii() and number.isdecimal()), reverse=True)
    return {number: found[str(number)] for number in numbers if str(number) in found}


def _backup(target: Path, data: bytes) -> Path:
    backup = target.with_name(f"{target.name}.{_BACKUP}-{max(_backups(target), default=0) + 1}")
    with os.fdopen(os.open(backup, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        file.write(data)
    shutil.copymode(target, backup)
    return backup


def _replace(target: Path, data: bytes) -> None:
    """Write a file beside the target and move it there, with the permissions and the owner of the target."""
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
            with suppress(OSError, AttributeError):  # a file of another user, which a group may write; or Windows
                os.chown(temporary, target.stat().st_uid, target.stat().st_gid)
        else:
            Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _remove_empty(folder: Path) -> None:
    """Remove a folder that is empty, and its empty parents, except the home folder and the working directory."""
    with suppress(OSError):  # it is not empty
        while folder not in (Path.home(), Path.cwd()):
            folder.rmdir()
            folder = folder.parent


def _umask() -> int:
    present = os.umask(0)
    os.umask(present)
    return present
