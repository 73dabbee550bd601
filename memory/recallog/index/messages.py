"""The protocol between the index service of a folder and its clients: the calls of two ports, as msgpack.

A message is its length (4 bytes, big-endian) and its bytes. Vectors are sent as float32.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from recallog.settings import Settings
from recallog_projections.index.embedders.embedder import Passage
from recallog_projections.index.engines.engine import Filter, Point, Search
from recallog_schemas.errors import EmbedderUnavailable, IndexLost, IndexUnavailable, RecallogError, SettingsError

LENGTH_BYTES = 4
MESSAGE_BYTES_MAX = 512 * 1024 * 1024
HANDSHAKE_BYTES_MAX = 1024
"""Maximum size of the first message: a client without the token may not send more."""


class Handshake(msgspec.Struct, tag=True):
    """The first message of a connection. The token is in a file of the folder that only its owner may read."""

    token: str


class Address(msgspec.Struct):
    """Where the service of a folder listens, on 127.0.0.1."""

    port: int
    token: str
    pid: int


def encode_settings(settings: Settings) -> bytes:
    """The line that a service reads from its standard input: the settings that it needs.

    They are not passed as arguments, since every user of the machine could read an API key there.
    """
    key = settings.embedder_api_key.get_secret_value() if settings.embedder_api_key else None
    fields = {
        "home": str(settings.home.absolute()),
        "embedder": settings.embedder,
        "embedder_api_key": key,
        "index_token_vectors": settings.index_token_vectors,
        "index_idle_seconds": settings.index_idle_seconds,
        "lock_wait_seconds": settings.lock_wait_seconds,
    }
    return msgspec.json.encode(fields) + b"\n"


def decode_settings(line: bytes) -> Settings:
    """The settings that a service was started with."""
    return Settings(ledger=None, views=None, index="embedded", **msgspec.json.decode(line))


class Model(msgspec.Struct, tag=True):
    """-> EmbedderInfo"""

    embedder: str


class Embed(msgspec.Struct, tag=True):
    """-> list[Embedding]"""

    embedder: str
    passages: Sequence[Passage]


class Create(msgspec.Struct, tag=True):
    collection: str
    dimension: int


class Drop(msgspec.Struct, tag=True):
    collection: str


class Upsert(msgspec.Struct, tag=True):
    collection: str
    points: Sequence[Point]


class SearchAll(msgspec.Struct, tag=True):
    """-> list[list[Hit]]"""

    collection: str
    searches: Sequence[Search]


class Retrieve(msgspec.Struct, tag=True):
    """-> dict[str, StoredPoint]"""

    collection: str
    ids: Sequence[str]
    payload: Sequence[str] | None
    vectors: bool


class Scroll(msgspec.Struct, tag=True):
    """-> list[StoredPoint]"""

    collection: str
    after: str | None
    limit: int
    vectors: bool


class CountPoints(msgspec.Struct, tag=True):
    """-> int"""

    collection: str
    filter: Filter | None


class Health(msgspec.Struct, tag=True):
    """-> str: why the index does not follow the ledger; "" if it does"""


Call = Handshake | Model | Embed | Create | Drop | Upsert | SearchAll | Retrieve | Scroll | CountPoints | Health


class EmbedderInfo(msgspec.Struct):
    """The properties of an embedder."""

    model: str
    dimension: int
    token_vectors: bool
    leaves_machine: bool


class Failed(msgspec.Struct):
    """The error of a call that raised."""

    error: str
    message: str


class Response(msgspec.Struct):
    """What a call returned, or the error that it raised."""

    value: msgspec.Raw = msgspec.Raw(b"\xc0")
    failed: Failed | None = None


_ERRORS: dict[str, type[RecallogError]] = {
    kind.__name__: kind for kind in (IndexUnavailable, IndexLost, EmbedderUnavailable, SettingsError)
}


def encode(message: object) -> bytes:
    return msgspec.msgpack.encode(message, enc_hook=_plain)


def answer(value: object) -> bytes:
    return encode(Response(value=msgspec.Raw(encode(value))))


def failure(error: Exception) -> bytes:
    """The response of a call that raised. Errors of other types become `IndexUnavailable`."""
    name = type(error).__name__
    message = str(error) if isinstance(error, RecallogError) else f"{name}: {error}"
    return encode(Response(failed=Failed(name if name in _ERRORS else IndexUnavailable.__name__, message)))


def decode(data: bytes, kind: Any) -> Any:
    """The message of type `kind`. Raises `msgspec.MsgspecError`."""
    return msgspec.msgpack.decode(data, type=kind, dec_hook=_array)


def value_of(data: bytes, kind: Any) -> Any:
    """What the call returned. Raises the error that the call raised."""
    answered: Response = decode(data, Response)
    if answered.failed is not None:
        raise _ERRORS[answered.failed.error](answered.failed.message)
    return decode(bytes(answered.value), kind)


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray):
        return {"shape": value.shape, "data": np.ascontiguousarray(value, np.float32).tobytes()}
    raise NotImplementedError(type(value))


def _array(_: type, value: Any) -> object:
    return np.frombuffer(value["data"], np.float32).reshape(value["shape"])
