"""Formats that packages of their own read: how their files look, so that an error can name the package to install."""

from collections.abc import Callable
from dataclasses import dataclass

_SPOKEN_BY = ("human", "ai", "HumanMessage", "AIMessage", "HumanMessageChunk", "AIMessageChunk")
_OF_OPENAI = ("chat.completion", "chat.completion.chunk", "response")
_STATES = ("messages", "values", "channel_values", "checkpoint", "state", "output")
_DEPTH_MAX = 5


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A format that a package reads if it is installed."""

    name: str
    package: str
    resembles: Callable[[object], bool]
    """Whether a document of a file is probably in the format."""

    @property
    def advice(self) -> str:
        return f"{self.package} reads the format {self.name}; install that package"


def _of_locomo(document: object) -> bool:
    """Whether it has a conversation and the name of a sample: a response of OpenAI has a conversation too."""
    return isinstance(document, dict) and "sample_id" in document and isinstance(document.get("conversation"), dict)


def _of_swe_agent(document: object) -> bool:
    if not isinstance(document, dict):
        return False
    history = document.get("history")
    has_agents = isinstance(history, list) and any(isinstance(each, dict) and "agent" in each for each in history)
    return has_agents or isinstance(document.get("trajectory"), list)


def _of_langchain(document: object, depth: int = _DEPTH_MAX) -> bool:
    """Whether there is a message that has a type instead of a role, maybe in the state of a graph."""
    if isinstance(document, list):
        return any(_of_langchain(each, depth - 1) for each in document)
    if not isinstance(document, dict) or depth <= 0:
        return False
    if "role" not in document and document.get("type") in (*_SPOKEN_BY, "constructor"):
        return True
    return any(_of_langchain(document.get(name), depth - 1) for name in _STATES)


def _of_openai(document: object) -> bool:
    """Whether it is a response, a request with its response, or a line of a batch."""
    if not isinstance(document, dict):
        return False
    data = document.get("data")
    if document.get("object") == "list" and isinstance(data, list):
        return any(map(_of_openai, data))
    is_exchange = "response" in document and ("request" in document or "custom_id" in document)
    is_asked = "custom_id" in document and "body" in document
    is_answered = document.get("object") in _OF_OPENAI or isinstance(document.get("choices"), list)
    return is_exchange or is_asked or is_answered or "preferred_output" in document


def _of_anthropic(document: object) -> bool:
    """Whether it is a response, or a line of a batch."""
    if not isinstance(document, dict):
        return False
    return "stop_reason" in document or ("custom_id" in document and ("params" in document or "result" in document))


ELSEWHERE = (
    Elsewhere("anthropic", "recallog-formats", _of_anthropic),
    Elsewhere("openai", "recallog-formats", _of_openai),
    Elsewhere("locomo", "recallog-eval", _of_locomo),
    Elsewhere("swe-agent", "recallog-formats", _of_swe_agent),
    Elsewhere("langchain", "recallog-formats", _of_langchain),
)
