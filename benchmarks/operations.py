"""What the declaration of operations costs a call: its arguments are validated, then the method runs."""

from statistics import median
from typing import Any, Unpack

from benchmarks.measure import Goal, Measure, Setup, interleaved, seconds
from recallog import Position
from recallog.operations import parameters
from recallog.operations.facade import Facade, operation
from recallog.operations.parameters import RecallOptions
from recallog_schemas.views import View

_US = 1e6
_GOAL = Goal("≤", 20)

FEW: dict[str, Any] = {}
MANY: dict[str, Any] = {
    "top_k": 7,
    "kinds": ["agent.spoke", "agent.thought"],
    "since": "2026-03-01T12:00:00Z",
    "min_similarity": 0.3,
    "after": "0:41",
    "as_of": Position(0, 41),
}


class _Nothing(Facade):
    """Operations that do nothing, with the parameters of `Memory.recall`."""

    @operation(example="nothing")
    async def recall(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        query: parameters.RecallQuery,
        *,
        top_k: parameters.RecallTopK = 5,
        **options: Unpack[RecallOptions],
    ) -> View:
        """Return an empty view."""
        return _EMPTY


_EMPTY = View()


async def measure(setup: Setup) -> list[Measure]:
    calls = setup.size(20_000, 2_000)
    facade = _Nothing()
    bare = _Nothing.operations["recall"].function

    async def called(method: Any, given: dict[str, Any]) -> float:
        async def work() -> None:
            for _ in range(calls):
                await method("village", "baker", "Who owes the miller?", **given)

        return await seconds(work())

    sides = {
        "bare": lambda: called(bare.__get__(facade), FEW),
        "few": lambda: called(facade.recall, FEW),
        "many": lambda: called(facade.recall, MANY),
    }
    taken = await interleaved(setup, f"operations: {calls:,} calls, bare, with few and with many arguments", sides)
    cost = {side: median(each) / calls * _US for side, each in taken.items()}
    return [
        Measure("operations: validated call, 3 arguments", cost["few"] - cost["bare"], "µs", _GOAL),
        Measure(
            "operations: validated call, 9 arguments, a time and a position as texts",
            cost["many"] - cost["bare"],
            "µs",
            _GOAL,
        ),
    ]
