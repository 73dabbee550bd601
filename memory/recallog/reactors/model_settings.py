"""The chat model that the settings name for a use."""

import os

import httpx

from recallog.reactors.chat_endpoint import TIMEOUT_SECONDS, ChatEndpoint
from recallog.settings import Settings, read_file
from recallog_schemas.errors import ModelMisconfigured

OFF = "off"
_TIMEOUT = "timeout_seconds"
_KEY_VARIABLE = "api_key_variable"


def named_model(settings: Settings | None, use: str) -> str | None:
    """The URL of the model that the settings name for a use; None if a rule is used instead."""
    if settings is None:
        return None
    own: str | None = getattr(settings, f"model_{use}")
    url = settings.model if own is None else own
    return None if url == OFF else url


def endpoint_of(settings: Settings, url: str) -> ChatEndpoint:
    """The endpoint that a setting names: `https://host/v1?timeout_seconds=60#model`. Raises `ModelMisconfigured`."""
    address = _parse_url(url)
    options = address.params
    timeout = _timeout(options.get(_TIMEOUT))
    key = _key(settings, address, options.get(_KEY_VARIABLE))
    sent = options.remove(_TIMEOUT).remove(_KEY_VARIABLE)
    return ChatEndpoint(str(address.copy_with(params=sent or None, fragment=None)), address.fragment, key, timeout)


def _parse_url(url: str | None) -> httpx.URL:
    """The parts of a URL. An invalid URL becomes an empty one, which the endpoint refuses without showing it."""
    try:
        return httpx.URL((url or "").strip())
    except httpx.InvalidURL:
        return httpx.URL()


def _key(settings: Settings, address: httpx.URL, variable: str | None) -> str | None:
    if variable is not None:
        if (key := os.environ.get(variable, read_file(variable))) is None:
            raise ModelMisconfigured(f"{_KEY_VARIABLE}={variable}: there is no such environment variable")
        return key
    if settings.model_api_key is None:
        return None
    if settings.model is None:
        raise ModelMisconfigured(
            "RECALLOG_MODEL_API_KEY is the key of RECALLOG_MODEL, which is not set; name the variable with the key of "
            f"another model in its URL: ?{_KEY_VARIABLE}=NAME"
        )
    # The key must not be sent to another host.
    return settings.model_api_key.get_secret_value() if _host(_parse_url(settings.model)) == _host(address) else None


def _host(address: httpx.URL) -> tuple[str, str, int | None]:
    return address.scheme, address.host, address.port


def _timeout(given: str | None) -> float:
    try:
        seconds = TIMEOUT_SECONDS if given is None else float(given)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ModelMisconfigured(f"{_TIMEOUT}={given}: should be a number of seconds, more than 0")
    return seconds
