"""The log of the servers: one JSON document per line, with the id of the request but no content of requests or
answers."""

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Any

from recallog_schemas.errors import InvariantViolation

_log = logging.getLogger("recallog.http")

FIELDS = "recallog_fields"
"""The attribute of a log record with additional fields of its line."""


class JsonLines(logging.Formatter):
    """Formats a log record as one JSON document.

    Of an error, the class and the traceback's places are logged. Its message, and further lines of the record, such as
    asyncio's description of a task, are left out because they may quote stored texts.
    """

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        message = record.getMessage().partition("\n")[0]
        line = {"at": at, "level": record.levelname.lower(), "logger": record.name, "message": message}
        error = record.exc_info[1] if record.exc_info else None
        raised = {} if error is None else _describe_error(error)
        return json.dumps({**line, **raised, **getattr(record, FIELDS, {})}, default=str)


def to_stderr(level: str) -> None:
    """Write the log of this process to stderr, from `level` on. Libraries log warnings only, because some log
    contents."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    root = logging.getLogger()
    logging.getLogger("recallog").setLevel(root.level)
    root.setLevel(max(root.level, logging.INFO))
    for name in ("httpx", "httpcore"):  # they log URLs, which contain names of spaces and agents
        logging.getLogger(name).setLevel(logging.WARNING)


def request(message: str, **fields: Any) -> None:
    """Log an answered request."""
    _log.info(message, extra={FIELDS: fields})


def event(message: str, **fields: Any) -> None:
    """Log an event of interest to operators."""
    _log.warning(message, extra={FIELDS: fields})


def defect(error: BaseException, request_id: str) -> InvariantViolation:
    """Log where an unexpected error was raised, and return the message for the client."""
    _log.error(
        "a request failed because of a defect", extra={FIELDS: {"request": request_id, **_describe_error(error)}}
    )
    return InvariantViolation(f"a defect of the server, logged as {request_id}; report it with the lines of the log")


def _describe_error(error: BaseException) -> dict[str, Any]:
    """The class of an error, and the places of its traceback, outermost first."""
    frames = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)]
    return {"error": type(error).__name__, "frames": frames}
