"""OpenAI's Responses."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from recallog_wrap.exchanges import Answer, Exchange, Message, chosen, plain

_LEFT_OUT = ("reasoning", "item_reference", "compaction")
_INSTRUCTIONS = ("system", "developer")


class Responses(Exchange):
    path: ClassVar[str] = "/responses"
    history: ClassVar[str] = "input"

    def kept(self, messages: Sequence[Any]) -> list[Message]:
        found = [each for each in messages if isinstance(each, Mapping) and each.get("type") not in _LEFT_OUT]
        return [_kept(each) for each in found if each.get("role") not in _INSTRUCTIONS]

    def answered(self, body: Mapping[str, Any]) -> list[Message]:
        return self.kept(body.get("output") or ())

    def answer(self) -> Answer:
        return _Events()

    def _part(self, text: str) -> dict[str, Any]:
        return {"type": "input_text", "text": text}


def _kept(item: Mapping[str, Any]) -> Message:
    if "role" in item:
        content = item.get("content")
        parts = content if isinstance(content, list) else ()
        refused = [part["refusal"] for part in parts if isinstance(part, Mapping) and part.get("type") == "refusal"]
        if refused:
            return {"role": item["role"], "content": None, "refusal": "\n".join(refused)}
        return {"role": item["role"], "content": plain(content)}
    if item.get("type") == "function_call":
        return chosen(item, "type", "call_id", "name", "arguments")
    if item.get("type") == "function_call_output":
        return chosen(item, "type", "call_id", "output")
    return {name: value for name, value in item.items() if name not in ("id", "status") and value is not None}


class _Events(Answer):
    def __init__(self) -> None:
        self._items: dict[int, Mapping[str, Any]] = {}
        self._texts: dict[int, str] = {}
        self._ended: set[int] = set()

    def add(self, event: Mapping[str, Any]) -> None:
        number, kind = event.get("output_index", 0), event.get("type")
        if kind in ("response.output_item.added", "response.output_item.done"):
            self._items[number] = event["item"]
            if kind == "response.output_item.done":
                self._ended.add(number)
        elif kind in ("response.output_text.delta", "response.function_call_arguments.delta"):
            self._texts[number] = self._texts.get(number, "") + event["delta"]

    def messages(self) -> list[Message]:
        found = [self._arrived(number) for number in sorted(self._items)]
        return Responses().kept([each for each in found if each is not None])

    def _arrived(self, number: int) -> Mapping[str, Any] | None:
        """An item, as far as it has arrived."""
        item, text = self._items[number], self._texts.get(number, "")
        if number in self._ended:
            return item
        if item.get("type") == "function_call":
            return {**item, "arguments": text}
        return {**item, "content": text} if item.get("type") == "message" and text else None
