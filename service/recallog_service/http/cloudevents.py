"""CloudEvents 1.0 over HTTP as events of a space: binary, structured and batched (JSON).

| CloudEvents | event |
| --- | --- |
| `id`, `time`, `type` | `id`, `at`, `kind` |
| `source` | `agent` |
| `subject` | `subject` |
| `session`, `turn`, `causationid`, `correlationid` (extensions) | `session`, `turn`, `causation_id`, `correlation_id` |
| `audience` (extension): names with commas between them; `,` and `%` in a name are percent-encoded | `audience` |
| `data`: a JSON object, or a text | `payload`, or its `text` |

`specversion`, `datacontenttype` and `dataschema` are not kept, and any other attribute is refused.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from recallog_schemas.errors import InvalidEvent
from recallog_service.http import requests

STRUCTURED = "application/cloudevents+json"
BATCHED = "application/cloudevents-batch+json"

_VERSION = "1.0"
_HEADER = "ce-"
_FIELDS = {
    "id": "id",
    "time": "at",
    "type": "kind",
    "source": "agent",
    "subject": "subject",
    "session": "session",
    "turn": "turn",
    "causationid": "causation_id",
    "correlationid": "correlation_id",
    "audience": "audience",
}
_DROPPED = frozenset({"specversion", "datacontenttype", "dataschema", "data"})


def is_binary(headers: Mapping[str, str]) -> bool:
    """Whether a request contains a CloudEvent in binary mode: attributes are headers."""
    return f"{_HEADER}specversion" in headers


def binary(headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
    """The fields of the event in a request in binary mode."""
    attributes: dict[str, Any] = {
        name.lower().removeprefix(_HEADER): unquote(value)
        for name, value in headers.items()
        if name.lower().startswith(_HEADER)
    }
    is_text = requests.content_type(headers).startswith("text/")
    data: Any = {}
    if body:
        try:
            data = body.decode() if is_text else requests.json_value(body)
        except UnicodeDecodeError:
            raise InvalidEvent("data: is not UTF-8", path="data", rule="string_unicode") from None
    return fields({**attributes, "data": data})


def fields(attributes: Any) -> dict[str, Any]:
    """The fields of an event from a CloudEvent as JSON. Raises `InvalidEvent`."""
    if not isinstance(attributes, dict):
        raise InvalidEvent("a CloudEvent should be a JSON object", rule="dict_type")
    if attributes.get("specversion") != _VERSION:
        raise InvalidEvent(f"specversion: should be {_VERSION}", path="specversion", rule="specversion")
    found: dict[str, Any] = {}
    for name, value in attributes.items():
        if name in _FIELDS:
            found[_FIELDS[name]] = value
        elif name not in _DROPPED:
            message = f"{name}: unknown attribute; put extra data into data"
            raise InvalidEvent(message, path=name, rule="extra_forbidden")
    for required in ("id", "source", "type"):
        if required not in attributes:
            raise InvalidEvent(f"{required}: is required", path=required, rule="missing")
    if isinstance(found.get("turn"), str) and found["turn"].isascii() and found["turn"].isdigit():
        found["turn"] = int(found["turn"][:20])
    if isinstance(found.get("audience"), str):
        found["audience"] = [unquote(name.strip()) for name in found["audience"].split(",") if name.strip()]
    data = attributes.get("data")
    found["payload"] = {"text": data} if isinstance(data, str) else {} if data is None else data
    return found
