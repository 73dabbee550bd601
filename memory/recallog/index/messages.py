"""The protocol between the process that serves indexes and its clients, as msgpack.

A message is its length (4 bytes, big-endian) and its bytes. A connection serves one call: the client sends a
`Handshake` and a `Call`, and the service answers with frames, of which the last is a `Result`, a `Failed` or a `Gone`.
A client that disconnects earlier cancels its call.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from recallog.settings import Settings
from recallog.version import __version__
from recallog_schemas import errors
from recallog_schemas.errors import IndexUnavailable, RecallogError
from recallog_schemas.sealing import Policy

Message = TypeVar("Message")

LENGTH_BYTES = 4
MESSAGE_BYTES_MAX = 512 * 1024 * 1024
BUFFER_BYTES = 1024 * 1024
"""The number of bytes of a message that a reader buffers before it has taken any of them."""
HANDSHAKE_BYTES_MAX = 1024
"""The maximum size of the first message. A client without the token may not send more."""


class ServiceAddress(msgspec.Struct):
    """The content of the file by which clients find the service of a folder."""

    socket: str
    """The path of the Unix socket of the process that serves the folder."""
    token: str
    """Names the folder at this socket."""
    pid: int
    home: str
    """The folder. A copy of it contains this address, too."""


class Handshake(msgspec.Struct, tag=True):
    """The first message of a connection."""

    token: str
    """The token of a `ServiceAddress`; "" for a `Serve`."""
    version: str = __version__
    """A service of another version ends, so that the client starts one of its own version."""


class Perform(msgspec.Struct, tag=True):
    """Execute an operation of the memory. -> its view as JSON"""

    operation: str
    """The qualified name, for example `recall` or `admin.rebuild`."""
    arguments: bytes
    """A JSON object."""
    log_events: int
    """How many events the views of the client's memory retain. Views with another value are different views."""
    models: Sequence[str] = ()
    """The client's models that the service must have besides the built-in ones."""
    scrub: str = ""
    """The parts of texts that the client's memory replaces before storing, as in `Settings.scrub`."""
    seal: Policy | None = None
    """Which events the client's memory seals; None if the service decides."""


class Recall(msgspec.Struct, tag=True):
    """Execute the query of the section RECALLED of a prompt that a client composes. -> RecallView as JSON"""

    query: bytes
    """A `RecallQuery` as JSON."""
    compared: int
    """The number of events that are compared by their words."""
    log_events: int
    """As in `Perform`."""
    past: bool
    """Whether the query reads the views of its past, instead of the present ones."""
    models: Sequence[str] = ()
    """As in `Perform`."""


class Serve(msgspec.Struct, tag=True):
    """Serve a folder; without `index_idle_seconds`, until the client disconnects. -> StillWorking, then Ending as JSON

    The other calls are for a folder that is served.
    """

    settings: bytes
    """See `encode_settings`."""
    working_folder: str
    """The working folder of the client."""


class Health(msgspec.Struct, tag=True):
    """-> HealthReport as JSON"""

    embedder: str | None = None
    """The setting of a client that would start a service: one with another embedder that cannot index ends. None: a
    client that only asks."""


FolderCall = Perform | Recall | Health
Call = FolderCall | Serve


class Ending(msgspec.Struct):
    """How the serving of a folder has ended, without an error."""

    elsewhere: bool
    """Whether another process holds the folder's index, so that the serving has not begun."""
    is_last: bool
    """Whether the process ends too."""


class HealthReport(msgspec.Struct):
    """Whether the index follows the ledger."""

    problem: str = ""
    """Why it does not, in one sentence; "" if it does."""
    indexed: int = 0
    """How many texts have been indexed since the service started, including those of a batch that is not committed
    yet."""
    repair: str = ""
    """The damage or loss that is being repaired, in one sentence; "" without one."""


class StillWorking(msgspec.Struct, tag=True):
    """The call is being executed. It is sent every few seconds, so that a client can distinguish slow work from a
    hang."""


class Progressed(msgspec.Struct, tag=True):
    """The progress of the call."""

    done: int
    total: int


class Result(msgspec.Struct, tag=True):
    """The result of the call, as JSON."""

    value: bytes


class Failed(msgspec.Struct, tag=True):
    """The error that the call raised."""

    error: str
    """The name of its class."""
    message: str
    fields: dict[str, Any]
    """The data of the error besides its message."""


class Gone(msgspec.Struct, tag=True):
    """The service ends, and has not completed the call: it is idle, or the files of its folder were replaced."""


Frame = StillWorking | Progressed | Result | Failed | Gone

_calls: msgspec.msgpack.Decoder[Call] = msgspec.msgpack.Decoder(Call)
_settings = msgspec.json.Decoder(dict[str, Any])
_addresses = msgspec.json.Decoder(ServiceAddress)
_handshakes = msgspec.msgpack.Decoder(Handshake)
_frames: msgspec.msgpack.Decoder[Frame] = msgspec.msgpack.Decoder(Frame)


def frame_message(message: Handshake | Call | Frame) -> bytes:
    """The bytes of a message as they are sent."""
    data = msgspec.msgpack.encode(message)
    return len(data).to_bytes(LENGTH_BYTES, "big") + data


def handshake(data: bytes) -> Handshake:
    """Raises `msgspec.MsgspecError`."""
    return _read(_handshakes, data)


def call(data: bytes) -> Call:
    """Raises `msgspec.MsgspecError`."""
    return _read(_calls, data)


def frame(data: bytes) -> Frame:
    """Raises `msgspec.MsgspecError`."""
    return _read(_frames, data)


def address(data: bytes) -> ServiceAddress:
    """The address in the file of a folder. Raises `msgspec.MsgspecError`."""
    return _read(_addresses, data)


def _read(decoder: "msgspec.msgpack.Decoder[Message] | msgspec.json.Decoder[Message]", data: bytes) -> Message:
    try:
        return decoder.decode(data)
    except (UnicodeDecodeError, RecursionError) as error:  # msgspec raises these for damaged texts and for deep nesting
        raise msgspec.DecodeError(str(error)) from None


def failure(error: Exception) -> Failed:
    """The answer to a call that raised `error`. An error that is not of Recallog becomes `IndexUnavailable`."""
    if isinstance(error, RecallogError):
        return Failed(type(error).__name__, str(error), vars(error))
    return Failed(IndexUnavailable.__name__, f"{type(error).__name__}: {error}", {})


def error_of(failed: Failed) -> RecallogError:
    """The error of a call, as the service raised it."""
    kind = getattr(errors, failed.error, IndexUnavailable)
    error: RecallogError = kind.__new__(kind, failed.message)
    vars(error).update(failed.fields)
    return error


def encode_settings(settings: Settings) -> bytes:
    """The settings of a memory that its service needs, as JSON.

    They are sent at the socket, because every user of the machine could read an API key in arguments, and because the
    process serves folders with different settings.
    """
    key, keys = settings.embedder_api_key, settings.keys
    fields = {
        "home": str(settings.home.absolute()),
        "embedder": settings.embedder,
        "embedder_api_key": key.get_secret_value() if key else None,
        "index_token_vectors": settings.index_token_vectors,
        "index_idle_seconds": settings.index_idle_seconds,
        "lock_wait_seconds": settings.lock_wait_seconds,
        "deadline_seconds": settings.deadline_seconds,
        "snapshot_records": settings.snapshot_records,
        "seal": settings.seal,
        "keys": keys if keys is None or "://" in keys else str(Path(keys).absolute()),
    }
    return msgspec.json.encode(fields)


def decode_settings(given: bytes) -> Settings:
    """The settings of a folder to serve. Raises `msgspec.MsgspecError` and `SettingsError`."""
    return Settings.valid(**{"ledger": None, "views": None, "index": "embedded"} | _read(_settings, given))
