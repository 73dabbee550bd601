"""What an agent may not see changes nothing that it sees: no hit, no order, no score, no count and no error.

Two memories are equal except for what is hidden from an agent: texts, kinds, times, sessions, names, weights. Whatever
its program asks, both answer the same.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recallog import Memory, RecallogError, Settings
from recallog.operations.facade import all_operations
from recallog_service.access import Guarded
from support import guarded_world as world
from support.events import one_loop, run
from support.guarded_world import ANNA, AS_ANNA, BERT, SPACE

OPERATIONS = all_operations(Memory)
PROPERTY = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))

_RANDOM_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)")
_FRACTION = re.compile(r"\d+\.\d+(e-\d+)?")


@pytest.fixture(scope="module")
def memories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Memory, Memory]]:
    def opened(name: str) -> Memory:
        home = tmp_path_factory.mktemp(name)
        return Memory.open(Settings(home=home, index="off", count_accesses=False))

    with one_loop():
        first, second = opened("first"), opened("second")
        run(world.populate(first))
        run(world.populate(second, world.OTHERWISE))
        assert run(first.admin.ledger_ends()) == run(second.admin.ledger_ends())
        yield first, second
        run(first.close())
        run(second.close())


def shown(memory: Memory, name: str, arguments: dict[str, object]) -> str:
    """What an agent's program is answered, without what is random and what follows from the moment of the call."""
    try:
        answer = run(Guarded(memory, AS_ANNA).call(OPERATIONS[name], arguments))
        text = OPERATIONS[name].to_json(answer).decode()
    except RecallogError as error:
        text = f"{type(error).__name__}: {error} {vars(error)}"
    text = re.sub('"generation":"[^"]*"', "", text)
    text = _TIME.sub(_rounded, _RANDOM_ID.sub("ID", text))
    return _FRACTION.sub(lambda found: f"{float(found[0]):.3f}", text)


def _rounded(found: re.Match[str]) -> str:
    is_now = abs(datetime.fromisoformat(found[0]) - datetime.now(UTC)) < timedelta(hours=1)
    return "NOW" if is_now else found[0]


@pytest.mark.models("all")
@pytest.mark.parametrize("name", [name for name, each in OPERATIONS.items() if each.scope != "operate"])
@given(data=st.data())
@PROPERTY
def test_an_answer_does_not_depend_on_what_is_hidden(
    memories: tuple[Memory, Memory], name: str, data: st.DataObject
) -> None:
    arguments = data.draw(world.arguments(OPERATIONS[name]))
    if data.draw(st.booleans()):  # otherwise most would be refused
        own = {"space": SPACE, "agent": ANNA} | ({"agent": BERT, "reader": ANNA} if name == "beliefs" else {})
        arguments |= {each: value for each, value in own.items() if each in OPERATIONS[name].parameters}
    first, second = (shown(memory, name, arguments) for memory in memories)
    assert first == second
