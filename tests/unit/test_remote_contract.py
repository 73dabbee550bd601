"""Each operation of the registry, with a memory and with a remote one of an equal memory: equal answers and errors."""

import copy
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import httpx
import pytest

from recallog import Memory, RecallogError, Settings
from recallog.operations.facade import Facade, all_operations
from recallog.operations.operation import Operation
from recallog.remote.client import Remote
from recallog_service.access import Access
from recallog_service.http.app import Application
from support.events import event, one_loop, run
from support.guarded_world import ANNA, POOLS, SPACE, populate
from unit.test_http import ARGUMENTS, OF_ONE

OPERATIONS = all_operations(Memory)
GIVEN: Mapping[str, Any] = {
    **{name: values[0] for name, values in POOLS.items()},
    "after": "0:0",
    "as_of": "0:9",
    "author": ANNA,
    "markers": ["found nowhere"],
    "event": {
        "space": SPACE,
        "agent": ANNA,
        "kind": "agent.spoke",
        "id": "new-0",
        "payload": {"text": "bread\u2028\n"},
    },
    "events": [event(space=SPACE, agent=ANNA, id=f"new-{n}") for n in (1, 2)],
    "namespace": ["notes", "with/slash"],
    "value": {"oven": [1, 2.5, None, True, "\u00e9"]},
    "metadata": {"oven": 2},
    "kinds": ["agent.spoke", "world.observed"],
    "whole": True,
    "red_line": True,
    "wait_index": False,
    "newest_first": True,
}
"""Values by the name of a parameter; `ARGUMENTS` has the others."""


@dataclass
class Pair:
    """Two equal memories, of which one is behind a server."""

    here: Memory
    there: Facade

    def check(self, operation: Operation, given: Mapping[str, Any]) -> None:
        """A call of each has equal answers or errors. What JSON cannot say only a remote memory refuses."""
        there = run(_outcome(operation, self.there, given))
        if not (isinstance(there, tuple) and there[2].get("rule") == "unencodable"):
            assert there == run(_outcome(operation, self.here, given)), given


async def _outcome(operation: Operation, facade: Facade, given: Mapping[str, Any]) -> Any:
    try:
        answer = await attrgetter(operation.qualified_name)(facade)(**copy.deepcopy(dict(given)))
    except RecallogError as error:
        return type(error), _stable(str(error)), {name: _stable(str(value)) for name, value in vars(error).items()}
    assert type(answer) in (operation.answer, *getattr(operation.answer, "__args__", ()))
    return _stable(operation.to_json(answer).decode())


_CHANGING = [
    (r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", "ID"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)", "TIME"),
    (r'"(generation|replaced|replaces|digest|expected_digest|sha256)":"\w+"', "GENERATION"),
    (r'"seconds":[\d.e-]+', "SECONDS"),
    (r'"bytes":\d+', "BYTES"),
    (r"/[^\s\"]*/(here|there)\b", "HOME"),
]


def _stable(text: str) -> str:
    """A text without what is new in each memory: ids, times, the names of generations, folders."""
    for pattern, name in _CHANGING:
        text = re.sub(pattern, name, text)
    return text


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("twins")

    async def begin() -> None:
        async with Memory.open(Settings(home=folder / "here", index="off", count_accesses=False)) as memory:
            await populate(memory)
            await memory.spaces()

    run(begin())
    shutil.copytree(folder / "here", folder / "there")
    settings = [Settings(home=folder / name, index="off", count_accesses=False) for name in ("here", "there")]
    with one_loop():
        here, served = (Memory.open(each) for each in settings)
        app = Application(served, Access.of(settings[1]))
        there = Remote("http://127.0.0.1", transport=httpx.ASGITransport(app))
        yield Pair(here, there)
        run(there.close())
        run(app.close())
        run(served.close())
        run(here.close())


NOW = "now"
"""Always given: the scores of two moments differ."""


@pytest.mark.models("all")
@pytest.mark.parametrize("everything", [False, True], ids=["required", "all"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_answers_are_equal(pair: Pair, name: str, everything: bool) -> None:
    operation = OPERATIONS[name]
    values = {**ARGUMENTS, **GIVEN, **(OF_ONE.get(name, {}) if everything else {})}
    given = {
        each: values[each]
        for each, field in operation.arguments.model_fields.items()
        if field.is_required() or each == NOW or (everything and values.get(each) is not None)
    }
    if operation.repeat_key is not None and operation.repeat_key not in given:
        given[operation.repeat_key] = f"{name}-{everything}"  # as a remote memory would fill it in
    pair.check(operation, given)


@pytest.mark.models("all")
@pytest.mark.parametrize(
    "value", [None, "", [], ["x"], 0, -1, 10**30, "\x00", "\ud800", float("nan"), {}, {"a": "\ud800"}]
)
@pytest.mark.parametrize("name", [name for name, each in OPERATIONS.items() if each.read_only])
def test_answers_to_unusual_values_are_equal(pair: Pair, name: str, value: Any) -> None:
    operation = OPERATIONS[name]
    values = {**ARGUMENTS, **GIVEN}
    fields = operation.arguments.model_fields.items()
    required = {each: values[each] for each, field in fields if field.is_required() or each == NOW}
    for each in operation.parameters:
        if each != NOW or value is not None:
            pair.check(operation, {**required, each: value})
