"""Texts that were cut inside a character, as the answer of a model can be: no operation takes them."""

import json
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from recallog import Memory
from recallog.operations.facade import all_operations
from recallog_schemas.errors import InvalidArgument, InvalidEvent
from support.events import run

HALF = "wo \ud83d"
OPERATIONS = all_operations(Memory)
EVENTS = {"event", "events"}


def shapes(value: str) -> list[Any]:
    """The text alone, and wherever JSON may have one."""
    return [value, [value], ["a", value], {"a": value}, {value: "a"}, [{"a": [value]}]]


@pytest.mark.parametrize("name", OPERATIONS)
def test_no_argument_of_an_operation_has_half_a_character(name: str) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            method = attrgetter(name)(memory)
            for parameter in OPERATIONS[name].parameters.keys() - EVENTS:
                for given in shapes(HALF):
                    with pytest.raises(InvalidArgument, match="is not valid text") as caught:
                        await method(**{parameter: given})
                    assert caught.value.path.partition(".")[0] == parameter
                    assert caught.value.path.isascii()

    run(work())


@pytest.mark.models("prompt")
def test_an_event_with_half_a_character_is_invalid(tmp_path: Path) -> None:
    fields = {"space": "village", "agent": "baker", "kind": "agent.spoke", "payload": {"text": HALF}}

    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            with pytest.raises(InvalidEvent, match=r"^payload\.text: "):
                await memory.publish(fields)
            with pytest.raises(InvalidArgument, match=r"^namespace: "):
                await memory.items.list("village", "baker", namespace="a\ud800b")
            with pytest.raises(InvalidArgument, match=r"^scene: "):
                await memory.context("village", "baker", scene=json.loads('"\\ud800"'))
            assert await memory.admin.ledger_ends() == [0]

    run(work())
