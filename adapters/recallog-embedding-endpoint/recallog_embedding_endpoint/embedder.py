"""The embedder of an OpenAI-compatible embeddings endpoint, to which texts are sent.

It makes one attempt per call. The caller decides about retries.
"""

import re
import time
from collections.abc import Sequence

import httpx
import msgspec
import numpy as np
from pydantic import SecretStr

from recallog import EmbedderUnavailable, SettingsError
from recallog.extending import Embedder, Embedding, Passage, Vectors
from recallog_projections.endpoint_url import endpoint_url
from recallog_projections.index.embedders.onnx import unit
from recallog_projections.index.embedders.prefixes import Prefixes, model_prefixes, split_name
from recallog_schemas import limits

_PATH = "/embeddings"
_TEXTS_MAX = 32
"""Texts in one request: the default limit of text-embeddings-inference. Other servers accept more."""
_TEXT_CHARS_MAX = limits.STORED_TEXT_CHARS_MAX
_TEXT_CHARS_MIN = 256
"""A text of this length or less is not refused for its length."""
_REPLY_BYTES_MAX = 16 * 1024 * 1024
"""32 vectors of 8,192 numbers take about 6 MB."""
_EXCERPT_CHARS_MAX = 200
_EMPTY_TEXT = "."
"""Sent instead of a blank text, which many endpoints refuse."""
_BUSY = frozenset({408, 409, 425, 429})
_TOO_LONG = frozenset({400, 413, 422})
"""Status codes for a text that is too long for the model. Some endpoints use them for other errors too."""
_KEY_REFUSED = "it refuses the API key; check the key and its permissions"
_NOT_FOUND = "the path or the model does not exist; check the URL and the model's name"
_CONFIGURATION_ERRORS = {
    401: _KEY_REFUSED,
    402: "the account of the API key requires a payment",
    403: _KEY_REFUSED,
    404: _NOT_FOUND,
    405: _NOT_FOUND,
    407: "the proxy refuses the request; check the proxy's settings",
    410: _NOT_FOUND,
}
_KEY = re.compile(r"[!-~]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class _Item(msgspec.Struct):
    embedding: list[float]
    index: int | None = None


class _Reply(msgspec.Struct):
    """The fields of a reply that are read."""

    data: list[_Item]


class _Refused(Exception):
    """The endpoint refuses the texts of this request."""


class EndpointEmbedder(Embedder):
    """Requests embeddings of `model_name` at `url`, which is one of

    - a host, `http://localhost:8000`: requests go to `/v1/embeddings`;
    - a base path, for example `https://api.example.com/v1`: requests go to that path + `/embeddings`;
    - a full path that ends in `/embeddings`. A query string, such as `?api-version=…`, is always sent.

    `prefixes` replaces the prefixes that belong to the model's name. `dimension` is the length of the model's vectors;
    without it, one request determines it. `timeout_seconds` is the limit of each request, `question_seconds` the limit
    of a request with only questions, for which a caller waits. Redirects are not followed, so that the key and the
    texts are sent only to the named host. The caller closes a `client` that it passes.

    A text is cut to 8,000 characters, and while the endpoint refuses it, to half its length, down to 256. An error in
    the configuration raises `SettingsError`. No error shows the key.
    """

    token_vectors = False
    leaves_machine = True

    def __init__(
        self,
        url: str,
        model_name: str,
        api_key: str | None = None,
        *,
        prefixes: Prefixes | None = None,
        dimension: int | None = None,
        timeout_seconds: float = 30.0,
        question_seconds: float = limits.DEADLINE_SECONDS,
        client: httpx.Client | None = None,
    ) -> None:
        """Raises `SettingsError` for an invalid URL, model or key."""
        try:
            self._url = endpoint_url(url, _PATH)
        except ValueError as error:
            raise SettingsError(f"the embedder's URL {error}") from None
        # Shown in errors, without the query, which may contain a key.
        self._shown = str(self._url.copy_with(query=None))
        if not model_name.strip():
            raise SettingsError(
                f"the setting names no model for {self._shown}; give the name of a model that it serves"
            )
        self._model_name = model_name.strip()
        self._prefixes = model_prefixes(prefixes, {}, [self._model_name])
        suffix = "" if prefixes is None else prefixes.identity()
        self.model = f"{self._model_name}@{self._url.netloc.decode()}{suffix}"
        self._dimension = dimension
        self._timeout_seconds = timeout_seconds
        self._question_seconds = min(question_seconds, timeout_seconds)
        self._api_key = SecretStr((api_key or "").strip())
        self._headers = httpx.Headers({"accept-encoding": "identity"})
        if self._api_key:
            # Checked here, since the error of the HTTP library would show the key.
            if not _KEY.fullmatch(self._api_key.get_secret_value()):
                raise SettingsError(
                    f"the API key for {self._shown} contains blanks or non-ASCII characters; copy it again"
                )
            self._headers["authorization"] = f"Bearer {self._api_key.get_secret_value()}"
        self._given_client = client
        self._own_client: httpx.Client | None = None

    def __repr__(self) -> str:
        return f"EndpointEmbedder({self._shown!r}, {self._model_name!r})"

    @property
    def dimension(self) -> int:  # type: ignore[override]
        """The length of vectors. Sends one request unless it is known. Raises the errors of `embed`."""
        return self._dimension or self._vectors(["dimension"], self._timeout_seconds).shape[1]

    def embed(self, passages: Sequence[Passage]) -> list[Embedding]:
        texts = [self._prefixes.of(passage) + _sendable(passage.text) for passage in passages]
        questions = all(passage.is_query for passage in passages)
        seconds = self._question_seconds if questions else self._timeout_seconds
        embeddings: list[Embedding] = []
        for start in range(0, len(texts), _TEXTS_MAX):
            vectors = self._vectors(texts[start : start + _TEXTS_MAX], seconds)
            embeddings += (Embedding(vector, (), np.zeros((0, len(vector)), np.float32)) for vector in vectors)
        return embeddings

    def close(self) -> None:
        """Close the connections. A later call opens new ones."""
        if self._own_client is not None:
            self._own_client.close()
            self._own_client = None

    def _vectors(self, texts: list[str], seconds: float) -> Vectors:
        """(texts, dimension), each of length 1."""
        try:
            return self._read(self._reply(texts, seconds), len(texts))
        except _Refused as refused:
            if len(texts) > 1:
                # One by one, since a text's vector must not depend on the length of the others.
                return np.vstack([self._vectors([text], seconds) for text in texts])
            (text,) = texts
            if len(text) <= _TEXT_CHARS_MIN:
                raise SettingsError(str(refused)) from None
            return self._vectors([text[: max(_TEXT_CHARS_MIN, len(text) // 2)]], seconds)

    def _reply(self, texts: list[str], seconds: float) -> bytes:
        """The body of a successful response."""
        try:
            response, body = self._post(texts, seconds)
        except httpx.TimeoutException as error:
            raise self._too_slow(seconds) from error
        except httpx.HTTPError as error:
            reason = f"{self._shown} cannot be reached ({self._excerpt(str(error) or type(error).__name__)})"
            raise EmbedderUnavailable(f"{reason}; check that it is running") from error
        if not response.is_success:
            raise self._refused(response, body)
        return body

    def _post(self, texts: list[str], seconds: float) -> tuple[httpx.Response, bytes]:
        """The response, and its body up to one byte more than `_REPLY_BYTES_MAX`."""
        deadline = time.monotonic() + seconds
        body = bytearray()
        with self._client().stream(
            "POST",
            self._url,
            json={"model": self._model_name, "input": texts},
            headers=self._headers,
            follow_redirects=False,
            timeout=seconds,
        ) as response:
            for chunk in response.iter_bytes():
                body += chunk
                if len(body) > _REPLY_BYTES_MAX:
                    break
                # The timeout of the library starts again with each chunk.
                if time.monotonic() > deadline:
                    raise self._too_slow(seconds)
        return response, bytes(body)

    def _client(self) -> httpx.Client:
        if self._given_client is not None:
            return self._given_client
        if self._own_client is None:
            self._own_client = httpx.Client()
        return self._own_client

    def _refused(self, response: httpx.Response, body: bytes) -> EmbedderUnavailable | SettingsError | _Refused:
        code = response.status_code
        status = f"{self._shown} answers {code} {self._excerpt(response.reason_phrase)}".rstrip()
        if code in _BUSY or code >= 500:
            return EmbedderUnavailable(f"{status}: it is busy or broken; try again later")
        if code < 400:
            target = self._excerpt(response.headers.get("location", ""))
            return SettingsError(f"{status} {target}: redirects are not followed; use the URL of the target")
        if code in _CONFIGURATION_ERRORS:
            return SettingsError(f"{status}: {_CONFIGURATION_ERRORS[code]}")
        message = f"{status}: it refuses this text for {self._model_name}: {self._excerpt(_text(body))}"
        return _Refused(message) if code in _TOO_LONG else SettingsError(message)

    def _read(self, body: bytes, texts: int) -> Vectors:
        """The vectors in the body of a successful response, in the order of the texts."""
        if len(body) > _REPLY_BYTES_MAX:
            raise self._invalid_reply(f"a reply of more than {_REPLY_BYTES_MAX:,} bytes")
        try:
            items = msgspec.json.decode(body, type=_Reply).data
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise self._invalid_reply(
                f"something other than a list of embeddings: {self._excerpt(_text(body))}"
            ) from None
        order = [n if item.index is None else item.index for n, item in enumerate(items)]
        if sorted(order) != list(range(texts)):
            raise self._invalid_reply(f"{len(items)} embeddings for {texts} texts, or the same one twice")
        lengths = {len(item.embedding) for item in items}
        if len(lengths) != 1 or 0 in lengths:
            raise self._invalid_reply(f"embeddings of {sorted(lengths)} numbers")
        found = lengths.pop()
        if self._dimension is not None and found != self._dimension:
            raise SettingsError(
                f"{self._model_name} at {self._shown} returns vectors of {found} numbers, not {self._dimension}: it is"
                " another model; give it another name"
            )
        vectors = np.zeros((texts, found), np.float64)
        for row, item in zip(order, items, strict=True):
            vectors[row] = item.embedding
        if not np.isfinite(vectors).all() or not vectors.any(axis=1).all():
            raise self._invalid_reply("an embedding of only zeros, or one that is not finite")
        self._dimension = found
        return unit(vectors)

    def _too_slow(self, seconds: float) -> EmbedderUnavailable:
        return EmbedderUnavailable(
            f"{self._shown} has not answered within {seconds:g} s; it may be busy, or the model slow"
        )

    def _invalid_reply(self, what: str) -> EmbedderUnavailable:
        return EmbedderUnavailable(f"{self._model_name} at {self._shown} answered {what}")

    def _excerpt(self, text: str) -> str:
        """The beginning of the endpoint's text for an error: one line, without the key."""
        key = self._api_key.get_secret_value()
        line = " ".join(_CONTROL.sub(" ", text.replace(key, "***") if key else text).split())
        return line if len(line) <= _EXCERPT_CHARS_MAX else line[: _EXCERPT_CHARS_MAX - 1] + "…"


def open_embedder(name: str, api_key: str | None, deadline_seconds: float) -> EndpointEmbedder:
    """The embedder for `name`: a URL, `#`, and the name of a model, optionally followed by its prefixes."""
    url, _, fragment = name.partition("#")
    model_name, prefixes = split_name(fragment)
    if not model_name:
        # The URL is not repeated, since it may contain a key.
        raise SettingsError("an endpoint's URL must end with # and the model's name: https://<host>/v1#<model>")
    return EndpointEmbedder(url, model_name, api_key, prefixes=prefixes, question_seconds=deadline_seconds)


def _sendable(text: str) -> str:
    """The text to send for `text`: cut to its limit, with "?" for lone surrogates."""
    return text[:_TEXT_CHARS_MAX].encode("utf-8", "replace").decode() if text.strip() else _EMPTY_TEXT


def _text(body: bytes) -> str:
    # More bytes than an excerpt has characters, since a key that is cut would not be found.
    return body[: 64 * _EXCERPT_CHARS_MAX].decode("utf-8", "replace")
