"""The queries of an agent's turn: salience, the prompt, beliefs, and whether a reflection is due."""

import random
import time
from collections.abc import Awaitable, Callable

from benchmarks.measure import Goal, Measure, Setup, percentiles, without_garbage_collection
from benchmarks.workload import batches, town
from recallog import Event, Memory
from recallog_schemas.errors import InvariantViolation

_SPACE = "town"
_SCENE = "the baker saw a lantern by the river and the miller knows more than he tells"
_GOAL = Goal("≤", 5.0)


async def measure(setup: Setup) -> list[Measure]:
    events, agents = setup.size(100_000, 10_000), setup.size(1_000, 100)
    async with Memory.open(setup.folder / "remember") as memory:
        setup.report(f"remember: appending {events:,} events of {agents:,} agents to one space")
        for batch in batches(town(events, agents), 1_000):
            await memory.publish_many(batch)
        setup.report("remember: building the views")
        await memory.episodic(_SPACE, "agent-0")
        questions: dict[str, Callable[[str], Awaitable[object]]] = {
            "salient": lambda agent: memory.salient(_SPACE, agent, _SCENE),
            "salient without a query": lambda agent: memory.salient(_SPACE, agent),
            "context": lambda agent: memory.context(_SPACE, agent, scene=_SCENE, budget_tokens=2_000),
            "beliefs": lambda agent: memory.beliefs(_SPACE, agent),
            "reflection": lambda agent: memory.reflection(_SPACE, agent),
        }
        measures: list[Measure] = []
        with without_garbage_collection():
            for name, ask in questions.items():
                setup.report(f"remember: {name}")
                p50, p99 = percentiles(f"remember: {name}", await _asked(ask, agents, setup.size(500, 100)))
                measures += [Measure(p50.name, p50.value, p50.unit, _GOAL if name == "salient" else None), p99]
            setup.report("remember: falling due")
            measures += percentiles("remember: append to due", await _fall_due(memory, setup.size(200, 40)))
            setup.report("remember: all pending triggers")
            measures += percentiles("remember: pending", await _asked(lambda _: memory.pending(_SPACE), agents, 20))
        return measures


async def _asked(ask: Callable[[str], Awaitable[object]], agents: int, queries: int) -> list[float]:
    rng, taken = random.Random(3), []
    for _ in range(queries):
        agent = f"agent-{rng.randrange(agents)}"
        began = time.perf_counter()
        await ask(agent)
        taken.append(time.perf_counter() - began)
    return taken


async def _fall_due(memory: Memory, times: int) -> list[float]:
    """Seconds from publishing the event that makes a reflection due until a query reports it."""
    taken = []
    for n in range(times):
        newcomer = f"newcomer-{n}"
        # The first answer covers all shared events so far; with the threshold 1 the next event makes it due.
        settled = {"reflection_threshold": 1}
        await memory.publish(Event(space=_SPACE, agent=newcomer, kind="agent.configured", payload=settled))
        await memory.publish((await memory.reflection(_SPACE, newcomer)).answer("All is well."))
        if (await memory.reflection(_SPACE, newcomer)).due:
            raise InvariantViolation("an answered reflection is still due")
        began = time.perf_counter()
        position = await memory.publish(
            Event(space=_SPACE, agent=newcomer, kind="agent.thought", payload={"text": "Is it?"})
        )
        due = await memory.reflection(_SPACE, newcomer, after=position)
        taken.append(time.perf_counter() - began)
        if due.since != position:
            raise InvariantViolation(f"due since {due.since}, not since {position}")
    return taken
