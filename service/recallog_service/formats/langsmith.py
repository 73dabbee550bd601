"""Runs of LangSmith, as its API and SDK give them: calls of models, with messages of LangChain or of a model's API.

Runs of models are read. Runs of chains and tools, which repeat their content, are only counted. If a file has no run of
a model, the input and the output of its first runs are read. The `thread_id` of the metadata, or the trace, names the
conversation; the module `exchanges` joins the runs of a conversation.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from recallog.messages.blocks import LeftOutBlock
from recallog_schemas.errors import InvalidEvent
from recallog_service.formats.conversation_file import FoundMessages, reader
from recallog_service.formats.declared import value_at
from recallog_service.formats.exchanges import Exchange, conversations_of
from recallog_service.formats.format import Format, Options
from recallog_service.formats.guess import objects
from recallog_service.formats.response_items import left_out
from recallog_service.formats.structure import Structure

_EXPECTED = "runs of LangSmith: objects with run_type and inputs"
_STRUCTURE = Structure([{"run_type": "<text>", "inputs": "<any>"}, {"runs": {"*": {"run_type": "<text>"}}}])
_THREAD = "|".join(f"extra.metadata.{name}" for name in ("thread_id", "session_id", "conversation_id")) + "|trace_id|id"
_CALLS = ("tool_use", "tool_call", "function_call")


def _find(found: Sequence[object], _options: Options) -> FoundMessages:
    runs = sorted(_runs(found), key=lambda run: str(run.get("start_time")))
    has_models = any(run.get("run_type") == "llm" for run in runs)
    broken = [each for each in found if isinstance(each, InvalidEvent)]
    return conversations_of([*(_exchange(run, has_models) for run in runs), *broken])


def _runs(found: Sequence[object]) -> Iterator[dict[str, Any]]:
    for run in objects(found):
        inner = objects(run.get("runs"))
        yield from _runs(inner) if inner else [run]
        yield from _runs(objects(run.get("child_runs")))


def _exchange(run: Mapping[str, Any], has_models: bool) -> Exchange | LeftOutBlock:
    if (run.get("run_type") != "llm") if has_models else run.get("parent_run_id"):
        return left_out(str(run.get("run_type")))
    asked = _messages(run.get("inputs"), "messages|prompts|input|question|query", "user")
    said = _messages(run.get("outputs"), "generations|messages|choices|message|output|answer|content|text", "assistant")
    if not asked and not said:
        return left_out(str(run.get("run_type")))
    end = run.get("end_time")
    return Exchange(
        asked,
        [{"created_at": end, **each} for each in said],
        {},
        str(value_at(run, _THREAD)),
        time=run.get("start_time"),
        left_out=["failed_run"] if run.get("error") else [],
    )


def _messages(value: object, places: str, role: str) -> list[dict[str, Any]]:
    found = value_at(value, places)
    while isinstance(found, list) and found and isinstance(found[0], list):
        found = found[0]
    listed = found if isinstance(found, list) else [found]
    return [_message(each, role) for each in listed if each]


def _message(value: object, role: str) -> dict[str, Any]:
    """A message with a role, in the form of LangChain or of an API; a generation or a choice contains one."""
    if not isinstance(value, dict):
        return {"role": role, "content": value if isinstance(value, str) else str(value)}
    if isinstance(inner := value.get("message"), dict):
        return _message(inner, role)
    fields = value_at(value, "kwargs|data")
    fields = fields if isinstance(fields, dict) else value
    kind = value_at({"id": value.get("id"), **fields}, "role|type")
    if value.get("type") == "constructor" and isinstance(value.get("id"), list):
        kind = value["id"][-1]
    calls = value_at(fields, "tool_calls|additional_kwargs.tool_calls")
    content = fields.get("content", fields.get("text"))
    if calls and isinstance(content, list):
        content = [part for part in content if not (isinstance(part, dict) and part.get("type") in _CALLS)]
    spoken = str(kind).lower().removesuffix("chunk").removesuffix("message") if isinstance(kind, str) else role
    named = {name: fields[name] for name in ("name", "tool_call_id", "status") if fields.get(name)}
    return {**named, "role": spoken, "content": content} | ({"tool_calls": calls} if calls else {})


FORMAT = Format(
    "langsmith",
    "runs of LangSmith",
    _STRUCTURE,
    reader(_EXPECTED, _find, _STRUCTURE),
    "messages of the calls of models, tool calls with their results; each once",
    "runs of chains and tools, which repeat them",
)
