"""Where the process that serves the indexes of a user's folders is found, and how a folder is served by it."""

import hashlib
import os
import socket
import stat
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

import msgspec

from recallog import layout
from recallog.index import messages
from recallog.settings import Settings
from recallog.version import __version__
from recallog_projections import private_files
from recallog_schemas.errors import IndexUnavailable, RecallogError

HAND_OVER_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class HostPlace:
    """The files of the process that serves indexes."""

    lock: Path
    address: Path
    log: Path


def find_place(home: Path | None = None) -> HostPlace:
    """The files of the process for this user and this installation: another version of the code finds another process.

    They are in a folder of the user for the time of a session, or else beside the system's temporary files. Where there
    is none that is the user's own and private, a process serves the folder `home` alone.
    """
    installed = (__version__, sys.executable, __file__, os.environ.get("PYTHONPATH", ""))
    name = hashlib.sha256("\0".join(installed).encode(errors="surrogateescape")).hexdigest()[:16]
    user = os.getuid() if hasattr(os, "getuid") else 0
    session = os.environ.get("XDG_RUNTIME_DIR")
    parents = [Path(session) / "recallog"] if session else []
    for folder in (*parents, Path(tempfile.gettempdir()) / f"recallog-{user}"):
        with suppress(OSError):
            private_files.make_folder(folder)
            if _is_own(folder, user):
                return _place_in(folder, name)
    return _place_in((home or Path.cwd()) / layout.INDEX, "host")


def _is_own(folder: Path, user: int) -> bool:
    """Whether a folder is no link, and only this user can look into it and write to it."""
    status = folder.lstat()
    is_private = not status.st_mode & 0o077 or sys.platform == "win32"
    return stat.S_ISDIR(status.st_mode) and status.st_uid == user and is_private and os.access(folder, os.W_OK)


def _place_in(folder: Path, name: str) -> HostPlace:
    return HostPlace(folder / f"{name}.lock", folder / f"{name}.json", folder / f"{name}.log")


def read_address(place: HostPlace) -> messages.ServiceAddress | None:
    """Where the process listens; None if there is none."""
    with suppress(OSError, msgspec.MsgspecError):
        return messages.address(place.address.read_bytes())
    return None


def frame_request(settings: Settings) -> bytes:
    """The message that asks for a folder to be served."""
    return messages.frame_message(messages.Serve(messages.encode_settings(settings), str(Path.cwd())))


class Lease:
    """The connection by which this process has asked for a folder to be served.

    Without `index_idle_seconds`, the folder is served until it is closed, also because this process ends.
    """

    def __init__(self, connection: socket.socket, pid: int, *messages_: bytes) -> None:
        """Sends the messages to the process `pid`."""
        self.pid = pid
        self.is_accepted = False
        """Whether the process has begun to serve the folder."""
        self._socket = connection
        self._stream: IO[bytes] = connection.makefile("rb")
        connection.sendall(b"".join(messages_))

    @classmethod
    def connect(cls, address: messages.ServiceAddress, asked: bytes, wait_seconds: float) -> Self:
        """Ask the process that listens at an address. Raises `OSError` if none does."""
        connection = socket.create_connection(("127.0.0.1", address.port), wait_seconds)
        return cls(connection, address.pid, messages.frame_message(messages.Handshake(address.token)), asked)

    def read_ending(self, wait_seconds: float = 0.0) -> messages.Ending | None:
        """How the serving has ended; None if it has not, after waiting for `wait_seconds` that nothing comes.

        Raises the error because of which the folder is not served, or `EOFError` if the process has ended.
        """
        self._socket.settimeout(wait_seconds or None)
        while wait_seconds or self._has_data():
            try:
                frame = self._read_frame()
            except TimeoutError:
                return None
            match frame:
                case messages.Result(value):
                    return msgspec.json.decode(value, type=messages.Ending)
                case messages.Failed() as failed:
                    raise messages.error_of(failed)
                case _:
                    self.is_accepted = True
        return None

    def _has_data(self) -> bool:
        with suppress(BlockingIOError):
            self._socket.setblocking(False)
            try:
                self._socket.recv(1, socket.MSG_PEEK)
            finally:
                self._socket.settimeout(None)
            return True
        return False

    def _read_frame(self) -> messages.Frame:
        length = int.from_bytes(self._read(messages.LENGTH_BYTES), "big")
        return messages.frame(self._read(length))

    def _read(self, length: int) -> bytes:
        data = self._stream.read(length)
        if len(data) < length:
            raise EOFError("it has ended")
        return data

    def end(self, wait_seconds: float) -> messages.Ending | None:
        """Close the folder if it was served for this process alone, and wait for that. None if it says nothing."""
        try:
            self._socket.shutdown(socket.SHUT_WR)
            return self.read_ending(wait_seconds)
        except (OSError, EOFError, IndexUnavailable):
            return messages.Ending(elsewhere=False, is_last=True)
        finally:
            self.close()

    def close(self) -> None:
        """Disconnect."""
        self._stream.close()
        self._socket.close()


def hand_over(place: HostPlace) -> None:
    """Hand the request on standard input to the process that listens. Its sender asks again if it needs an answer."""
    address = read_address(place)
    with suppress(OSError, EOFError, RecallogError), socket.socket(fileno=0) as given:
        if address is not None:
            stream = given.makefile("rb")
            length = stream.read(messages.LENGTH_BYTES)
            asked = length + stream.read(int.from_bytes(length, "big"))
            Lease.connect(address, asked, HAND_OVER_SECONDS).read_ending(HAND_OVER_SECONDS)
