"""A model at an OpenAI-compatible chat completions endpoint: one request is one HTTP request with one deadline."""

import asyncio
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx
import msgspec
from pydantic import SecretStr

from recallog.reactors.chat_model import ChatModel
from recallog_projections.endpoint_url import endpoint_url
from recallog_schemas import limits
from recallog_schemas.errors import ModelFailed, ModelMisconfigured

TIMEOUT_SECONDS = 30.0
_PATH = "/chat/completions"
_BUSY = frozenset({408, 409, 425, 429})
_KEY_REFUSED = "it refuses the API key; check the key and its permissions"
_NOT_THERE = "the path or the model does not exist; check the URL and the model's name"
_OPERATOR_ACTS = {
    401: _KEY_REFUSED,
    402: "the account of the API key requires a payment",
    403: _KEY_REFUSED,
    404: _NOT_THERE,
    405: _NOT_THERE,
    407: "a proxy refuses the request; check the proxy's settings",
    410: _NOT_THERE,
}
_SECONDS = re.compile(r"[0-9]+(\.[0-9]+)?")
_KEY = re.compile(r"[!-~]+")


class _Message(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _Completion(msgspec.Struct):
    """The fields of a reply that are read."""

    choices: list[_Choice]


class ChatEndpoint(ChatModel):
    """Calls `model` at an endpoint. `url` is one of

    - a host, `http://localhost:8000`: requests go to `/v1/chat/completions`;
    - a base, `https://api.example.com/v1` or any other path: requests go to that path + `/chat/completions`;
    - the full path, ending in `/chat/completions`.

    A query in the URL, such as `?api-version=…`, is part of each request.

    `timeout_seconds` applies to a whole request, from connecting to the reply's last byte. Redirects are not followed:
    the key and the agent's memories are sent to the named host only. The caller closes a `client` that it passes.
    """

    def __init__(
        self,
        url: str,
        model: str,
        api_key: str | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        """Raises `ModelMisconfigured` for an invalid URL, model or key."""
        try:
            self._url = endpoint_url(url, _PATH)
        except ValueError as error:
            raise ModelMisconfigured(f"the URL of the model {error}") from None
        # Shown in error messages, without the query, which may contain a key.
        self._shown = str(self._url.copy_with(query=None))
        if not model.strip():
            raise ModelMisconfigured(f"no model is named for {self._shown}; add the name of one that it serves: #name")
        self._model = model
        self._timeout_seconds = timeout_seconds
        self._api_key = SecretStr((api_key or "").strip())
        self._headers = httpx.Headers({"accept-encoding": "identity"})
        if self._api_key:
            # Checked here, since the error of the HTTP library would show the key.
            if not _KEY.fullmatch(self._api_key.get_secret_value()):
                raise ModelMisconfigured(
                    f"the API key for {self._shown} contains blanks or characters that are not ASCII; copy it again"
                )
            self._headers["authorization"] = f"Bearer {self._api_key.get_secret_value()}"
        self._owns_client = client is None
        self._client = client or httpx.AsyncClient()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._shown!r}, {self._model!r})"

    @property
    def name(self) -> str:
        return self._model[: limits.NAME_CHARS_MAX]

    async def close(self) -> None:
        if self._owns_client:
            await self._client.aclose()

    async def reply(self, instructions: str, data: str) -> str:
        messages = [{"role": "system", "content": instructions}, {"role": "user", "content": data}]
        try:
            async with asyncio.timeout(self._timeout_seconds):
                response, body = await self._post(messages)
        except TimeoutError:
            raise ModelFailed(
                f"{self._shown} has not answered within {self._timeout_seconds:g} s; it may be busy, or the model slow",
                retryable=True,
            ) from None
        except httpx.HTTPError as error:
            reason = f"{self._shown} cannot be reached ({self.excerpt(str(error) or type(error).__name__)})"
            raise ModelFailed(f"{reason}; check that it runs", retryable=True) from error
        if not response.is_success:
            raise self._make_error(response, body)
        return self._read(body)

    async def _post(self, messages: list[dict[str, str]]) -> tuple[httpx.Response, bytes]:
        """The response, and its body up to `limits.ASKED_REPLY_BYTES_MAX` bytes and one more."""
        payload = {"model": self._model, "temperature": 0, "messages": messages}
        body = bytearray()
        async with self._client.stream(
            "POST", self._url, json=payload, headers=self._headers, follow_redirects=False, timeout=None
        ) as response:
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > limits.ASKED_REPLY_BYTES_MAX:
                    break
        return response, bytes(body[: limits.ASKED_REPLY_BYTES_MAX + 1])

    def _make_error(self, response: httpx.Response, body: bytes) -> ModelFailed | ModelMisconfigured:
        code = response.status_code
        status = f"{self._shown} answers {code} {self.excerpt(response.reason_phrase)}".rstrip()
        if code in _BUSY or code >= 500:
            return ModelFailed(
                f"{status}: it is busy or broken", retryable=True, retry_after_seconds=_retry_after_seconds(response)
            )
        if code < 400:
            location = self.excerpt(response.headers.get("location", ""))
            return ModelMisconfigured(f"{status} {location}: redirects are not followed; set the URL it leads to")
        if code in _OPERATOR_ACTS:
            return ModelMisconfigured(f"{status}: {_OPERATOR_ACTS[code]}")
        excerpt = self.excerpt(body.decode("utf-8", "replace"))
        return ModelFailed(f"{status}: it does not accept this request: {excerpt}", retryable=False)

    def _read(self, body: bytes) -> str:
        """The reply in the body of a successful response."""
        if len(body) > limits.ASKED_REPLY_BYTES_MAX:
            raise self.invalid_reply(f"with more than {limits.ASKED_REPLY_BYTES_MAX:,} bytes")
        try:
            completion = msgspec.json.decode(body, type=_Completion)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            excerpt = self.excerpt(body.decode("utf-8", "replace"))
            raise self.invalid_reply(f"with something that is not a chat completion: {excerpt}") from None
        if not completion.choices:
            raise self.invalid_reply("with a chat completion without choices")
        choice = completion.choices[0]
        if choice.message.refusal:
            raise self.invalid_reply(f"with a refusal: {self.excerpt(choice.message.refusal)}")
        if choice.finish_reason in ("length", "content_filter"):
            raise self.invalid_reply(f"with a reply that was cut off ({choice.finish_reason})")
        return choice.message.content or ""

    def invalid_reply(self, what: str) -> ModelFailed:
        return ModelFailed(f"{self._model} at {self._shown} answered {what}", retryable=True)

    def excerpt(self, text: str) -> str:
        """The beginning of a reply for an error message: one line, with the key removed."""
        key = self._api_key.get_secret_value()
        return super().excerpt(text.replace(key, "***") if key else text)


def _retry_after_seconds(response: httpx.Response) -> float | None:
    """The wait that the response requests (RFC 9110, section 10.2.3), at most `limits.ASKED_WAIT_SECONDS_MAX`."""
    value = response.headers.get("retry-after", "").strip()
    if _SECONDS.fullmatch(value):
        return min(float(value), limits.ASKED_WAIT_SECONDS_MAX)
    until = _moment(value)
    if until is None:
        return None
    # The clock of the server is used if the response has its time, since the clock here may differ.
    now = _moment(response.headers.get("date", "")) or datetime.now(UTC)
    return min(max((until - now).total_seconds(), 0.0), limits.ASKED_WAIT_SECONDS_MAX)


def _moment(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
