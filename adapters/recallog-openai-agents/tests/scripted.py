"""A model of the SDK that gives scripted answers, and records its inputs."""

from collections.abc import Sequence
from typing import Any

from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from agents import Model, ModelResponse, Usage, set_tracing_disabled

set_tracing_disabled(True)


class ScriptedModel(Model):
    def __init__(self, answers: Sequence[Any]) -> None:
        self.answers = list(answers)
        self.asked: list[list[Any]] = []

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:
        self.asked.append(list(input))
        return ModelResponse(output=[self.answers.pop(0)], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


def said(text: str) -> ResponseOutputMessage:
    content = [ResponseOutputText(type="output_text", text=text, annotations=[])]
    return ResponseOutputMessage(type="message", id="msg_1", role="assistant", status="completed", content=content)


def call(name: str, arguments: str) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(type="function_call", id="fc_1", call_id="c_1", name=name, arguments=arguments)
