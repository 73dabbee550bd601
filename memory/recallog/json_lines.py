"""The format of the logs of all processes: one JSON document per line, without texts that agents have said."""

import json
import logging
import traceback
from datetime import UTC, datetime
from typing import Any

FIELDS = "recallog_fields"
"""The attribute of a log record with further fields of its line."""


class JsonLines(logging.Formatter):
    """Formats a log record as one JSON document with `at`, `level`, `logger` and `message`.

    For an error, its class and the place where it was raised are added. Its message, and further lines of the record,
    such as those in which asyncio shows a task, may quote what agents have said, and are left out.
    """

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        message = record.getMessage().partition("\n")[0]
        line = {"at": at, "level": record.levelname.lower(), "logger": record.name, "message": message}
        error = record.exc_info[1] if record.exc_info else None
        raised = {} if error is None else describe_error(error)
        return json.dumps({**line, **raised, **getattr(record, FIELDS, {})}, default=str)


def describe_error(error: BaseException) -> dict[str, Any]:
    """The class of an error, and the places from its caller to where it was raised."""
    frames = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)]
    return {"error": type(error).__name__, "frames": frames}
