"""Formats that packages of their own read: how their files look, so that an error can name the package to install."""

from collections.abc import Callable
from dataclasses import dataclass

_SPOKEN_BY = ("human", "ai", "HumanMessage", "AIMessage", "HumanMessageChunk", "AIMessageChunk")
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


ELSEWHERE = (
    Elsewhere("locomo", "recallog-eval", _of_locomo),
    Elsewhere("swe-agent", "recallog-formats", _of_swe_agent),
    Elsewhere("langchain", "recallog-formats", _of_langchain),
)
