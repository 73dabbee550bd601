"""Anthropic's messages."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from recallog_wrap.exchanges import Answer, Exchange, Message, chosen, parsed, plain

_LEFT_OUT = ("thinking", "redacted_thinking")
_DELTAS = {"text_delta": "text", "input_json_delta": "partial_json"}


class AnthropicMessages(Exchange):
    path: ClassVar[str] = "/v1/messages"
    history: ClassVar[str] = "messages"

    def kept(self, messages: Sequence[Any]) -> list[Message]:
        return [kept for each in messages if isinstance(each, Mapping) and (kept := _kept(each)) is not None]

    def answered(self, body: Mapping[str, Any]) -> list[Message]:
        return self.kept([body]) if body.get("role") else []

    def answer(self) -> Answer:
        return _Events()

    def _preceded(self, message: Message, recalled: str) -> Message:
        """A message with recalled memories added. Results of tools must come first in a message."""
        content = message.get("content")
        if not isinstance(content, list):
            return super()._preceded(message, recalled)
        results = [part for part in content if part.get("type") == "tool_result"]
        others = [part for part in content if part.get("type") != "tool_result"]
        return {**message, "content": [*results, self._part(recalled), *others]}


def _kept(message: Mapping[str, Any]) -> Message | None:
    content = message.get("content")
    if isinstance(content, list):
        content = [_block(part) for part in content if isinstance(part, Mapping) and part.get("type") not in _LEFT_OUT]
    if not content or message.get("role") == "system":
        return None
    return {"role": message.get("role"), "content": plain(content)}


def _block(part: Mapping[str, Any]) -> Mapping[str, Any]:
    if part.get("type") == "text":
        return chosen(part, "type", "text")
    if part.get("type") == "tool_use":
        return chosen(part, "type", "id", "name", "input")
    if part.get("type") == "tool_result":
        return chosen(part, "type", "tool_use_id", "content", "is_error")
    return {name: value for name, value in part.items() if name != "cache_control" and value is not None}


class _Events(Answer):
    def __init__(self) -> None:
        self._blocks: dict[int, Mapping[str, Any]] = {}
        self._texts: dict[int, str] = {}

    def add(self, event: Mapping[str, Any]) -> None:
        number = event.get("index", 0)
        if event.get("type") == "content_block_start":
            self._blocks[number] = event["content_block"]
        elif event.get("type") == "content_block_delta":
            delta = event["delta"]
            if (name := _DELTAS.get(delta.get("type"))) is not None:
                self._texts[number] = self._texts.get(number, "") + delta[name]

    def messages(self) -> list[Message]:
        content = [self._arrived(number) for number in sorted(self._blocks)]
        kept = _kept({"role": "assistant", "content": [each for each in content if each is not None]})
        return [] if kept is None else [kept]

    def _arrived(self, number: int) -> Mapping[str, Any] | None:
        """A block, as far as it has arrived."""
        block, text = self._blocks[number], self._texts.get(number, "")
        if block.get("type") == "text":
            text = (block.get("text") or "") + text
            return {**block, "text": text} if text else None
        if block.get("type") in ("tool_use", "server_tool_use") and text:
            return {**block, "input": parsed(text)}
        return block
