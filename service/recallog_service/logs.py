"""The log of the servers: a JSON document a line, with the id of the request and nothing that was sent or answered."""

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Any

from recallog_schemas.errors import InvariantViolation

_log = logging.getLogger("recallog.http")

FIELDS = "recallog_fields"
"""The attribute of a log record with further fields of its line."""


class JsonLines(logging.Formatter):
    """Formats a log record as one JSON document.

    An error gives its class and where it was raised. Its message, and further lines of the record, such as those in
    which asyncio shows a task, may quote what agents have said, and are left out.
    """

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        message = record.getMessage().partition("\n")[0]
        line = {"at": at, "level": record.levelname.lower(), "logger": record.name, "message": message}
        error = record.exc_info[1] if record.exc_info else None
        raised = {} if error is None else _describe_error(error)
        return json.dumps({**line, **raised, **getattr(record, FIELDS, {})}, default=str)


def to_stderr(level: str) -> None:
    """Write the log of this process to stderr, from `level` on, but no details of libraries: some show what is sent."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    root = logging.getLogger()
    logging.getLogger("recallog").setLevel(root.level)
    root.setLevel(max(root.level, logging.INFO))
    for name in ("httpx", "httpcore"):  # their lines have URLs, with the names of spaces and agents
        logging.getLogger(name).setLevel(logging.WARNING)


def request(message: str, **fields: Any) -> None:
    """Log a request that was answered."""
    _log.info(message, extra={FIELDS: fields})


def event(message: str, **fields: Any) -> None:
    """Log something that an operator may want to know."""
    _log.warning(message, extra={FIELDS: fields})


def defect(error: BaseException, request_id: str) -> InvariantViolation:
    """Log where an unexpected error was raised, and return the message for the client."""
    _log.error(
        "a request failed because of a defect", extra={FIELDS: {"request": request_id, **_describe_error(error)}}
    )
    return InvariantViolation(f"a defect of the server, logged as {request_id}; report it with the lines of the log")


def _describe_error(error: BaseException) -> dict[str, Any]:
    """The class of an error, and the places from its caller to where it was raised."""
    frames = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)]
    return {"error": type(error).__name__, "frames": frames}
