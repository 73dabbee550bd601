"""The index over mem0, against the real package, offline."""

import socket
from pathlib import Path
from typing import Any

import mem0
import pytest
from mem0.memory import telemetry

from recallog import Event
from recallog.extending import MemoryIndex
from recallog.sync import Memory
from recallog_mem0 import Mem0Index


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only this machine can be reached, and there is no key."""

    def refuse(address: Any, *_: Any, **__: Any) -> socket.socket:
        raise OSError(f"{address} is not on this machine")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket.socket, "connect", lambda _, address: refuse(address))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture
def index(tmp_path: Path) -> Mem0Index:
    return Mem0Index.local(tmp_path / "mem0")


def said(event_id: str, text: str, space: str = "village", agent: str = "baker") -> Event:
    return Event(id=event_id, space=space, agent=agent, kind="world.observed", turn=3, payload={"text": text})


def test_it_has_the_two_methods_of_an_index(index: Mem0Index) -> None:
    assert isinstance(index, MemoryIndex)
    assert not telemetry.MEM0_TELEMETRY
    assert mem0.__name__ == "mem0"


def test_a_hit_is_the_event_that_was_added(index: Mem0Index) -> None:
    events = [said("fire", "The mill burned down."), said("goat", "The widow has a new goat.")]
    index.index(events)
    assert index.search("Where was a fire?", 1) == [events[0]]


def test_an_event_that_is_added_again_is_stored_once_also_after_a_restart(tmp_path: Path) -> None:
    index = Mem0Index.local(tmp_path)
    index.index([said("fire", "The mill burned down."), said("fire", "The mill burned down.", space="town")])
    index.index([said("fire", "The mill burned down.")])
    assert sorted(event.space for event in index.search("a fire", 10)) == ["town", "village"]
    index.close()
    again = Mem0Index.local(tmp_path)
    again.index([said("fire", "The mill burned down.")])
    assert len(again.search("a fire", 10)) == 2


def test_an_event_without_text_and_a_query_without_text_find_nothing(index: Mem0Index) -> None:
    index.index([said("empty", " ")])
    assert index.search("  ", 5) == index.search("fire", 5) == []


def test_an_agent_sees_only_its_own_space(index: Mem0Index) -> None:
    with Memory.in_memory(index=index) as memory:
        for space in ("village", "town"):
            memory.publish(said("fire", f"The mill of the {space} burned down.", space=space))
        found = memory.salient("village", "baker", "Where was a fire?")
        assert [event.text for event in found.memories] == ["The mill of the village burned down."]
        assert found.memories[0].relevance == 1.0
