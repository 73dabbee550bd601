"""The process that serves the indexes of a user's folders: where it listens, and how a program has a folder served."""

import hashlib
import os
import re
import select
import socket
import stat
import struct
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

import msgspec

from recallog import layout
from recallog.index import messages
from recallog.settings import Settings
from recallog.version import __version__
from recallog_projections import private_files
from recallog_schemas.errors import IndexUnavailable

_PATH_BYTES_MAX = 100
"""The longest path of a socket: macOS allows 103 bytes, Linux 107."""
_INHERITED = re.compile(
    "HOME|TMPDIR|TZ|XDG_CACHE_HOME|.*_PROXY|(PYTHON|LD_|DYLD_|OMP_|MKL_|CUDA_|ORT_|HF_|TORCH|TRANSFORMERS_|SSL_).*",
    re.I,
)
"""Names of the variables that the process gets: those on which Python, and the libraries of models, depend."""


def inherited_environment() -> dict[str, str]:
    """The part of the environment that the process gets. Of secrets, it has only those of proxies and model hubs."""
    found = {name: value for name, value in os.environ.items() if _INHERITED.fullmatch(name)}
    if searched := found.get("PYTHONPATH"):
        found["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, searched.split(os.pathsep)))
    return found


def find_socket(home: Path) -> Path:
    """The socket of the process for this user, this installation and this environment; `home` is the folder to serve.

    A program with another version, or with other variables that the process would get, finds another process. The
    socket is in the user's folder for the session, or else beside the system's temporary files, or else in `home`, in a
    folder that only the user can open. Beside it are a lock, which is held while the process is started, and a log.
    Raises `IndexUnavailable` if none of these folders is suitable.
    """
    if not hasattr(socket, "AF_UNIX"):
        raise IndexUnavailable("this system has no Unix sockets, by which the process of the index is reached")
    identity = (__version__, sys.executable, __file__, sorted(inherited_environment().items()))
    name = hashlib.sha256(repr(identity).encode(errors="surrogateescape")).hexdigest()[:16]
    for folder in _candidates(home):
        with suppress(OSError):
            private_files.make_folder(folder)
            if _is_private(folder) and len(os.fsencode(folder)) + len(name) < _PATH_BYTES_MAX - len("/.socket"):
                return folder / f"{name}.socket"
    raise IndexUnavailable(
        "the process of the index needs a folder for its socket that belongs to this user, is not open to others and "
        "has a short name: name one in XDG_RUNTIME_DIR"
    )


def _candidates(home: Path) -> Iterator[Path]:
    session = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
    with suppress(OSError):
        if session.is_absolute() and _is_private(session):  # after `su` it may be the folder of another user
            yield session / "recallog"
    yield Path(tempfile.gettempdir()) / f"recallog-{os.getuid()}"
    yield home.absolute() / layout.INDEX


def _is_private(folder: Path) -> bool:
    """Whether `folder` is not a link, and only this user can open it."""
    status = folder.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077


def listen(path: Path) -> socket.socket:
    """The socket of a new process, at which programs can connect before it has started. Raises `OSError`."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    return listener


class Lease:
    """The connection by which this program has asked for a folder to be served.

    Without `index_idle_seconds`, the folder is served until the program closes the connection, or ends.
    """

    def __init__(self, connection: socket.socket, pid: int, settings: Settings) -> None:
        """Asks the process `pid`, to which the connection leads, to serve the folder of `settings`."""
        self.pid = pid
        """0 if it is not known."""
        self.is_served = False
        """Whether the process has begun to serve the folder."""
        self._socket = connection
        self._stream: IO[bytes] = connection.makefile("rb")
        serve = messages.Serve(messages.encode_settings(settings), _find_working_folder())
        with suppress(BrokenPipeError, ConnectionResetError):  # it has just ended, which `read_ending` reports
            connection.sendall(messages.frame_message(messages.Handshake("")) + messages.frame_message(serve))
        connection.settimeout(None)
        self._readable = select.poll()
        self._readable.register(connection, select.POLLIN)

    def read_ending(self, wait_seconds: float = 0.0) -> messages.Ending | None:
        """How the serving has ended; None if it has not, after waiting for `wait_seconds`.

        Raises the error because of which the folder is not served, or `EOFError` if the process has ended.
        """
        while self._readable.poll(wait_seconds * 1_000):
            length = int.from_bytes(self._stream.read(messages.LENGTH_BYTES), "big")
            data = self._stream.read(length)
            if not length or len(data) < length:
                raise EOFError("it has ended")
            match messages.frame(data):
                case messages.Result(value):
                    return msgspec.json.decode(value, type=messages.Ending)
                case messages.Failed() as failed:
                    raise messages.error_of(failed)
                case _:
                    self.is_served = True
        return None

    def end(self, wait_seconds: float) -> messages.Ending | None:
        """Close the folder, and wait for that; None if the process does not respond for `wait_seconds`."""
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


def _find_working_folder() -> str:
    """The folder to which names of models are relative; "/" if it was deleted, or if its name is not valid UTF-8."""
    try:
        return str(Path.cwd()).encode().decode()
    except (OSError, UnicodeError):
        return "/"


def pid_of_peer(connection: socket.socket) -> int:
    """The process that listens at the other end of a connection; 0 if the system does not report it."""
    if sys.platform != "linux":
        return 0
    credentials = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return int(credentials[0])
