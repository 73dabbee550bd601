"""The folder of a workspace: the files that are documents, and the paths to which documents may be written.

A document is a regular file with a text in UTF-8; its key is its path below the folder, with `/` between the names.
Hidden files (a name begins with a dot) are neither imported nor exported, so that no key reaches `.git` or `.ssh`.
Symbolic links are not followed.
"""

import hashlib
import json
import os
import stat
import tempfile
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from recallog_schemas import limits
from recallog_schemas.errors import InvalidArgument
from recallog_schemas.models.items.payloads import value_bytes
from recallog_schemas.models.workspace import limits as workspace_limits
from recallog_schemas.models.workspace.views import FileLeftOut
from recallog_schemas.names import in_nfc
from recallog_schemas.validation import is_text

STATE = ".recallog-workspace.json"
"""The file in which a folder stores the digests of its last import or export."""
HIDDEN = "hidden"

_FOREIGN = frozenset("\0\\")
"""Characters that some systems do not allow in a name."""


class Unfit(Exception):
    """A file is not a document, or a document cannot be a file."""

    def __init__(self, rule: str, reason: str) -> None:
        super().__init__(reason)
        self.rule, self.reason = rule, reason


@dataclass(slots=True)
class FolderFiles:
    """The files below a folder."""

    keys: list[str] = field(default_factory=list)
    """The keys of files that may be documents, sorted by folder."""
    left_out: list[FileLeftOut] = field(default_factory=list)


def left_out(key: str, unfit: Unfit) -> FileLeftOut:
    """The entry of a report for a file or a document that is left out."""
    return FileLeftOut(path=_show_key(key), rule=unfit.rule, reason=unfit.reason)


def files(folder: Path) -> FolderFiles:
    """The files of a folder. Raises `InvalidArgument` if there is no such folder, or if it has too many files."""
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise InvalidArgument(f"folder: {folder} {what}", path="folder", rule="folder")
    found = FolderFiles()
    for key, unfit in _walk_files(folder, ""):
        if unfit is not None:
            found.left_out.append(left_out(key, unfit))
        else:
            found.keys.append(key)
        if len(found.keys) > workspace_limits.WORKSPACE_FILES_MAX:
            raise InvalidArgument(
                f"folder: {folder} has more than {workspace_limits.WORKSPACE_FILES_MAX:,} files; "
                "import its folders one by one",
                path="folder",
                rule="too_many",
            )
    return found


def text_of(folder: Path, key: str) -> str:
    """The text of a file. Raises `Unfit`."""
    try:
        path = folder / _on_disk(folder, key)
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            data = file.read(limits.ITEM_VALUE_BYTES_MAX + 1)
    except OSError as error:
        raise _make_unfit(error) from None
    if len(data) > limits.ITEM_VALUE_BYTES_MAX:
        raise Unfit("too_large", f"has more than {limits.ITEM_VALUE_BYTES_MAX:,} bytes, the limit of a document")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise Unfit("not_utf8", f"is not text in UTF-8: byte {error.start:,} begins no character") from None
    if (size := value_bytes(text)) > limits.ITEM_VALUE_BYTES_MAX:
        raise Unfit(
            "too_large",
            f"has {size:,} bytes as JSON, in which line breaks and quotes count twice; the limit of a document is "
            f"{limits.ITEM_VALUE_BYTES_MAX:,}",
        )
    return text


def digest_of(folder: Path, key: str) -> str | None:
    """The SHA-256 of the bytes of a file in hex; None if there is no file. Raises `Unfit` if a file may not be written
    there."""
    try:
        path = _path_of(folder, key)
        if not path.exists():
            return None
        if not path.is_file():
            raise Unfit("no_file", "a folder or a device has this name")
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise _make_unfit(error) from None


def write(folder: Path, key: str, text: str) -> None:
    """Write the text to a file, completely or not at all. A new file is readable only to its owner. Raises `Unfit`."""
    try:
        path = _path_of(folder, key)
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, text.encode())
    except OSError as error:
        raise _make_unfit(error) from None


@dataclass(frozen=True, slots=True)
class FolderState:
    """The texts that a folder and the workspace of an agent had in common at the last import or export."""

    space: str
    agent: str
    documents: Mapping[str, str] = field(default_factory=dict)
    """By key: the SHA-256 of the text."""

    @classmethod
    def read(cls, folder: Path, space: str, agent: str) -> "FolderState":
        """The state of the folder. It is empty if the folder was never used with this agent, or if it cannot be
        read."""
        with suppress(OSError, ValueError, RecursionError):
            known = json.loads((folder / STATE).read_bytes())
            if isinstance(known, dict) and (known.get("space"), known.get("agent")) == (space, agent):
                documents = known.get("documents")
                if isinstance(documents, dict) and all(isinstance(each, str) for each in documents.values()):
                    return cls(space, agent, documents)
        return cls(space, agent)

    def write(self, folder: Path) -> None:
        """Write the state to the folder. Raises `Unfit`."""
        known = {"space": self.space, "agent": self.agent, "documents": dict(sorted(self.documents.items()))}
        try:
            _replace(folder / STATE, json.dumps(known, indent=1).encode() + b"\n")
        except OSError as error:
            raise _make_unfit(error) from None


def _walk_files(folder: Path, above: str) -> Iterator[tuple[str, Unfit | None]]:
    """The keys of the files below a folder, each with the reason if it is left out."""
    try:
        with os.scandir(folder / above) as scanned:
            entries = sorted(scanned, key=lambda entry: entry.name)
    except OSError as error:
        yield above, _make_unfit(error)
        return
    for entry in entries:
        key = f"{above}{entry.name}"
        if key == STATE:
            continue
        if unfit := _unfit_name(key) or _unfit_entry(entry):
            yield in_nfc(key), unfit
        elif entry.is_dir(follow_symlinks=False):
            yield from _walk_files(folder, f"{key}/")
        else:
            yield in_nfc(key), None


def _on_disk(folder: Path, key: str) -> str:
    """The path of a document's file as it is in the folder, since some systems decompose names."""
    other = unicodedata.normalize("NFD", key)
    return key if os.path.lexists(folder / key) or not os.path.lexists(folder / other) else other


def _unfit_name(key: str) -> Unfit | None:
    """Why this name is not possible for both a file and a document; None if it is."""
    names = key.split("/")
    if not is_text(key) or not _FOREIGN.isdisjoint(key):
        return Unfit("name", "its name has characters that not every system can write")
    if not all(names):
        return Unfit("name", "its name is not the path of a file: a part of it is empty")
    if any(set(name) == {"."} for name in names):
        return Unfit("name", "its name is not the path of a file: it leads out of the folder")
    if any(name.startswith(".") for name in names):
        return Unfit(HIDDEN, "is hidden: its name begins with a dot")
    if len(key) > limits.ITEM_NAME_CHARS_MAX:
        return Unfit("name", f"its name has more than {limits.ITEM_NAME_CHARS_MAX} characters")
    return None


def _unfit_entry(entry: "os.DirEntry[str]") -> Unfit | None:
    if entry.is_symlink():
        return _LINK
    if not (entry.is_dir() or entry.is_file()):
        return Unfit("no_file", "is not a regular file")
    return None


_LINK = Unfit("link", "is a symbolic link, which may lead out of the folder")


def _path_of(folder: Path, key: str) -> Path:
    """The path to which a document is written. Raises `Unfit` if it may be outside the folder."""
    if unfit := _unfit_name(key):
        raise unfit
    path = folder
    for name in _on_disk(folder, key).split("/"):
        path /= name
        if path.is_symlink():
            raise _LINK
    return path


def _replace(path: Path, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".recallog-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            with suppress(FileNotFoundError):
                os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _make_unfit(error: OSError) -> Unfit:
    return Unfit("failed", f"cannot be read or written: {error.strerror or error}")


def _show_key(key: str) -> str:
    return key.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
