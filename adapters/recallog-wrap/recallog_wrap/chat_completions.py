"""OpenAI's chat completions."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from recallog_wrap.exchanges import Answer, Exchange, Message, chosen, plain

_INSTRUCTIONS = ("system", "developer")


class ChatCompletions(Exchange):
    path: ClassVar[str] = "/chat/completions"
    history: ClassVar[str] = "messages"

    def kept(self, messages: Sequence[Any]) -> list[Message]:
        return [_kept(each) for each in messages if isinstance(each, Mapping) and each.get("role") not in _INSTRUCTIONS]

    def answered(self, body: Mapping[str, Any]) -> list[Message]:
        choices = body.get("choices") or [{}]
        message = choices[0].get("message")
        return self.kept([message]) if message else []

    def answer(self) -> Answer:
        return _Chunks()


def _kept(message: Mapping[str, Any]) -> Message:
    kept = chosen(message, "role", "name", "refusal", "tool_call_id")
    calls = [_call(call) for call in message.get("tool_calls") or ()]
    content = plain(message.get("content"))
    return kept | {"content": content or None} | ({"tool_calls": calls} if calls else {})


def _call(call: Mapping[str, Any]) -> Message:
    function = call.get("function") or {}
    named = {"name": function.get("name"), "arguments": function.get("arguments") or ""}
    return {"id": call.get("id"), "type": "function", "function": named}


class _Chunks(Answer):
    def __init__(self) -> None:
        self._texts = {"content": "", "refusal": ""}
        self._calls: dict[int, dict[str, Any]] = {}

    def add(self, event: Mapping[str, Any]) -> None:
        for choice in event.get("choices") or ():
            if choice.get("index", 0) == 0:
                self._take(choice.get("delta") or {})

    def _take(self, delta: Mapping[str, Any]) -> None:
        for name in self._texts:
            self._texts[name] += delta.get(name) or ""
        for call in delta.get("tool_calls") or ():
            known = self._calls.setdefault(
                call.get("index", 0), {"id": None, "function": {"name": "", "arguments": ""}}
            )
            known["id"] = call.get("id") or known["id"]
            for name, text in (call.get("function") or {}).items():
                known["function"][name] = (known["function"].get(name) or "") + (text or "")

    def messages(self) -> list[Message]:
        calls = [self._calls[number] for number in sorted(self._calls)]
        if not calls and not any(self._texts.values()):
            return []
        texts = {name: text or None for name, text in self._texts.items()}
        return [_kept({"role": "assistant", **texts, "tool_calls": calls})]
