"""Probably misspelt names get one warning with the nearest known name, on every door."""

import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from recallog import Memory, Settings, mistakes
from recallog_projections import notices
from recallog_schemas import codec, kinds
from recallog_schemas.errors import InvalidEvent
from support.cli import recallog
from support.events import event, one_loop, run
from support.http import Door

Log = pytest.LogCaptureFixture


@pytest.fixture(autouse=True)
def _nothing_said() -> Iterator[None]:
    notices.forget()
    yield
    notices.forget()


@pytest.mark.models("beliefs", "conversations", "long_term")
@pytest.mark.parametrize(
    ("kind", "near"),
    [
        ("session.end", "session.ended"), ("turn.end", "turn.ended"),
        ("agent.spoken", "agent.spoke"), ("agent.speak", "agent.spoke"), ("agents.spoke", "agent.spoke"),
        ("agent.thougth", "agent.thought"), ("world.observe", "world.observed"), ("tool.use", "tool.used"),
        ("memory.retain", "memory.retained"), ("agent.configure", "agent.configured"),
        ("space.configurd", "space.configured"), ("agent.reflect", "agent.reflected"),
    ],
)  # fmt: skip
def test_a_kind_near_a_known_one_has_a_nearest_name(kind: str, near: str) -> None:
    assert mistakes.near_kind(kind) == near


@pytest.mark.parametrize(
    "kind",
    [
        *kinds.CATALOGUE,
        *("order.placed", "shop.opened", "agent.moved", "agent.woke", "agent.slept", "session.paused", "turn.started"),
        *("item.cut", "agent.spoke.loudly", "user.said"),
    ],
)
def test_a_kind_unlike_all_others_has_none(kind: str) -> None:
    assert mistakes.near_kind(kind) is None


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("bakr", "baker"), ("Baker", "baker"), ("bakker", "baker"), ("smiht", "smith"), ("agent-12", "agent-12 "),
        ("visitor", None), ("miller", None), ("agent-2", None),
    ],
)  # fmt: skip
def test_an_agent_near_a_known_one_has_a_nearest_name(name: str, near: str | None) -> None:
    assert mistakes.near_agent(name, ["baker", "smith", "agent-1", "agent-12 "]) == near


def told(log: Log) -> list[str]:
    return [record.getMessage() for record in log.records if record.levelno == logging.WARNING]


def test_python_logs_a_near_kind_once(caplog: Log) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish_many([event("agent.spoken"), event("agent.spoken"), event("order.placed")])
            await memory.publish(event("agent.spoken"))

    run(work())
    assert told(caplog) == ["the kind 'agent.spoken' is not known; did you mean 'agent.spoke'?"]


def test_a_kind_that_the_space_declares_is_no_mistake(caplog: Log) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish(event("space.configured", payload={"kinds": {"agent.spoken": {"shared": True}}}))
            await memory.publish(event("agent.spoken"))

    run(work())
    assert told(caplog) == []


@pytest.mark.models("long_term")
@pytest.mark.parametrize(
    ("kind", "payload", "field", "near"),
    [
        ("agent.configured", {"workng": {}}, "workng", "working"),
        ("space.configured", {"share_kinds": []}, "share_kinds", "shared_kinds"),
        ("memory.retained", {"text": "a", "importence": 1}, "importence", "importance"),
        ("agent.configured", {"favourite_colour": "red"}, None, None),
        ("agent.spoke", {"text": "a", "texts": ["a"]}, None, None),
    ],
)
def test_python_logs_a_near_field(
    caplog: Log, kind: str, payload: dict[str, object], field: str | None, near: str | None
) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish(event(kind, payload=payload))

    run(work())
    assert told(caplog) == ([] if field is None else [f"{kind} has no field {field!r}; did you mean {near!r}?"])


def test_an_agent_that_only_reads_is_told_the_nearest_name(tmp_path: Path, caplog: Log) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish(event("world.observed"))
            for name in ("bakr", "bakr", "visitor", "baker"):
                await memory.episodic("village", name)

    run(work())
    message = "no event of village is by 'bakr' or addressed to it; did you mean 'baker'?"
    assert told(caplog) == [message]
    result = recallog("episodic", "village", "bakr", "--home", tmp_path)
    assert (result.code, "Bread!" in result.out, result.err.count(message)) == (1, True, 1)
    assert recallog("episodic", "village", "bakr", "--json", "--home", tmp_path).json["known"] is False
    assert recallog("episodic", "village", "miller", "--home", tmp_path).code == 0


def test_the_command_line_prints_a_warning(tmp_path: Path, caplog: Log) -> None:
    assert recallog("publish", "village", "baker", "agent.spoken", "Bread!", "--home", tmp_path).code == 0
    assert told(caplog) == ["the kind 'agent.spoken' is not known; did you mean 'agent.spoke'?"]


def test_http_answers_with_a_header_and_the_log_has_no_names(caplog: Log) -> None:
    """Each answer has it, since the clients of one process are many."""
    with one_loop():
        door = Door(Memory.in_memory(), Settings())
        fields = {"space": "village", "agent": "baker", "kind": "world.observe", "payload": {}}
        for _ in range(2):
            answer = door.call("publish", event=fields)
            message = "the kind 'world.observe' is not known; did you mean 'world.observed'?"
            assert (answer.status_code, answer.headers["recallog-warning"]) == (200, message)
        answer = door.call("episodic", space="village", agent="bakr")
        message = "no event of village is by 'bakr' or addressed to it; did you mean 'baker'?"
        assert (answer.status_code, answer.headers["recallog-warning"]) == (200, message)
        assert "recallog-warning" not in door.call("episodic", space="village", agent="baker").headers
    assert told(caplog) == []


@pytest.mark.parametrize(
    ("kind", "payload", "message"),
    [
        ("agent.configured", {"working": {"enabld": True}}, "working.enabld: unknown field; did you mean enabled?"),
        ("agent.configured", {"tiers": {"max": {"fsat": 1}}}, "tiers.max.fsat: unknown field; did you mean fast?"),
        ("agent.configured", {"tiers": {"max": {"z": 1}}}, "z: unknown field; it has fast, medium, slow, glacial"),
        ("space.configured", {"kinds": {"order.placed": {"importnce": 1}}}, "importnce: unknown field; "),
    ],
)
def test_a_field_within_a_setting_is_refused_with_the_nearest_name(
    kind: str, payload: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidEvent, match=re.escape(message)):
        codec.make({"space": "village", "agent": "baker", "kind": kind, "payload": payload})
