"""Changes of a client's file: computed, shown, and written in one step, with a backup of what was there before."""

import difflib
import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from recallog import RecallogError
from recallog_agents.clients import Client, Server, is_ours

_BOM = b"\xef\xbb\xbf"
_BACKUP = "before-recallog"


@dataclass(frozen=True, slots=True)
class Change:
    """What a file has, and what it is to have."""

    path: Path
    """The file as the user names it; it may be a symbolic link."""
    before: bytes | None
    """None: there is no such file."""
    after: bytes | None
    """None: there is to be no file."""
    restores: Path | None = None
    """The backup that `after` is, which the change makes superfluous."""

    @property
    def is_needed(self) -> bool:
        return self.before != self.after

    def diff(self) -> list[str]:
        """The lines of a unified diff."""
        before, after = (_lines(data) for data in (self.before, self.after))
        old, new = ("/dev/null" if data is None else str(self.path) for data in (self.before, self.after))
        return list(difflib.unified_diff(before, after, old, new, lineterm=""))

    def write(self) -> Path | None:
        """Write the file, and return its backup; None if there was no file, or if an earlier backup is restored.

        The file has either content at any moment. A symbolic link stays one, and the file keeps its permissions.
        Raises `RecallogError` if the file has changed since it was read, or cannot be written.
        """
        target = Path(os.path.realpath(self.path))
        try:
            if _read(target) != self.before:
                raise RecallogError(f"{self.path} has changed meanwhile, and was left as it is; run the command again")
            if self.after is None:
                target.unlink()
                return None
            if self.before is not None and not os.access(target, os.W_OK):
                raise RecallogError(f"{self.path} is read-only; nothing was written. Let yourself write it first")
            target.parent.mkdir(parents=True, exist_ok=True)
            backup = None if self.before is None or self.restores is not None else _backup(target, self.before)
            _replace(target, self.after)
            if self.restores is not None:
                self.restores.unlink(missing_ok=True)
            return backup
        except OSError as error:
            raise RecallogError(f"{self.path} cannot be written: {error.strerror or error}") from None


def install(client: Client, path: Path, name: str, server: Server) -> Change:
    """The change that puts a server into a file, or updates it there.

    Raises `RecallogError`, also if another program's server has the name.
    """
    before = _content(path)
    with _Reading(client, path):
        text, entry = _text(before or b""), client.entry(server)
        servers = client.servers(text) if text.strip() else {}
        has = name in servers
        if has and not is_ours(servers[name]):
            remedy = "give this one another name with --name"
            raise RecallogError(f"{path} has another server with the name {name}, which was left as it is; {remedy}")
        changed = client.update(text, name, entry) if has else client.insert(text, name, entry)
        _check(client, name, text, changed)
    return Change(path, before, before if changed == text else _bytes(changed, before))


def uninstall(client: Client, path: Path, name: str) -> Change:
    """The change that takes a server out of a file. A file that has not changed otherwise is as it was before.

    Raises `RecallogError`.
    """
    before = _content(path)
    if before is None:
        return Change(path, None, None)
    with _Reading(client, path):
        text = _text(before)
        servers = client.servers(text) if text.strip() else {}
        if name not in servers:
            return Change(path, before, before)
        if not is_ours(servers[name]):
            raise RecallogError(f"the server {name} in {path} is not one of Recallog, and was left as it is")
        for backup in _backups(path).values():
            earlier = _content(backup) or b""
            with suppress(ValueError):  # it is not in the client's format
                earlier_text = _text(earlier)
                had = client.servers(earlier_text) if earlier_text.strip() else {}
                if name not in had and _bytes(client.insert(earlier_text, name, servers[name]), earlier) == before:
                    return Change(path, before, earlier, backup)
        if _bytes(client.insert("", name, servers[name]), None) == before:
            return Change(path, before, None)
        changed = client.remove(text, name)
        _check(client, name, text, changed)
        return Change(path, before, _bytes(changed, before))


class _Reading:
    """Says what to do about a file that is not in the format of its client."""

    def __init__(self, client: Client, path: Path) -> None:
        self._client = client
        self._path = path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, ValueError | RecursionError):
            message = " ".join(str(error).split())
            raise RecallogError(
                f"{self._path} cannot be read as the configuration of {self._client.title} and was left as it is: "
                f"{message}. Correct it, or move it away, and run the command again"
            ) from None


def _check(client: Client, name: str, before: str, after: str) -> None:
    """Raise `ValueError` if more than a server has changed: a file may be written in a way that is not foreseen."""
    if client.rest(before, name) != client.rest(after, name):
        raise ValueError("it is written in a way in which it cannot be changed without a risk; change it by hand")


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
    """The bytes of a text in the style of those that were there: with their mark at the beginning, and line ends."""
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
            with suppress(OSError, AttributeError):  # another's file, which a group may write; or Windows
                os.chown(temporary, target.stat().st_uid, target.stat().st_gid)
        else:
            Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    present = os.umask(0)
    os.umask(present)
    return present
