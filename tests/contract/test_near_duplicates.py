"""Nearly equal texts with chosen vectors: an embeddings endpoint, the process that serves the index, and two programs.

What becomes of a text never depends on vectors: all of them are stored, and the answer names the nearest entry.
"""

import math
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from recallog import Memory
from recallog.composition import assemble
from recallog.settings import Settings
from recallog_projections.stores.memory import MemoryStore
from recallog_schemas.models.long_term.views import Retained
from recallog_streams.ledgers.memory import MemoryLedger
from support.cli import spawn
from support.embedding_endpoint import EmbeddingEndpoint, embedding_endpoint
from support.events import event, run
from support.toy_embedder import ChosenVectors

pytestmark = pytest.mark.models("long_term")

BAKER, MILLER = ("village", "baker"), ("village", "miller")
DEADLINE_SECONDS = 20.0
"""On a busy machine a process may be kept from running for longer than the default."""


def at(cosine: float, axis: Sequence[float], beside: int) -> list[float]:
    """A vector with this cosine to `axis`, and the rest of its length in the direction `beside`."""
    vector = [cosine * value for value in axis] + [0.0] * (beside + 1 - len(axis))
    vector[beside] += math.sqrt(1 - cosine**2)
    return vector


A, B, C = (
    "The miller owes the baker nine sacks.",
    "The miller owes nine sacks to the baker.",
    "The miller pays on Friday.",
)
LESSON, NEAR_LESSON = "Before baking, sift the flour.", "Sift the flour before baking."
EXACT, AT_THE_LIMIT = "The mill stands by the river.", "The mill stands at the river."
EXACT_LESSON, LESSON_AT_THE_LIMIT = "Bake before dawn.", "Bake bread before dawn."
VECTORS = {
    A: [1.0],
    B: at(0.93, [1.0], 1),
    C: at(0.91, at(0.93, [1.0], 1), 2),
    LESSON: at(0.0, [], 3),
    NEAR_LESSON: at(0.86, at(0.0, [], 3), 4),
    EXACT: at(0.0, [], 5),
    AT_THE_LIMIT: at(0.92, at(0.0, [], 5), 6),
    EXACT_LESSON: at(0.0, [], 7),
    LESSON_AT_THE_LIMIT: at(0.85, at(0.0, [], 7), 8),
}
STEPS: list[tuple[tuple[str, str], str, str, str, str | None, float | None]] = [
    # who, type, the entry's id, its text, the nearest entry that may be named, the cosine to it
    (BAKER, "fact", "a", A, None, None),
    (BAKER, "fact", "b", B, "a", 0.93),
    (BAKER, "fact", "c", C, "b", 0.91),
    (BAKER, "lesson", "l", LESSON, None, None),
    (BAKER, "lesson", "near l", NEAR_LESSON, "l", 0.86),
    (MILLER, "lesson", "of another", NEAR_LESSON, None, None),
    (BAKER, "fact", "a fact", NEAR_LESSON, "a", 0.0),
    (BAKER, "fact", "e", EXACT, "a", 0.0),
    (BAKER, "fact", "at the limit", AT_THE_LIMIT, "e", 0.92),
    (BAKER, "lesson", "m", EXACT_LESSON, "l", 0.0),
    (BAKER, "lesson", "m at the limit", LESSON_AT_THE_LIMIT, "m", 0.85),
]
LEFT = {of_agent: {(step[2], step[3], 1) for step in STEPS if step[0] == of_agent} for of_agent in (BAKER, MILLER)}


async def check_left(memory: Memory) -> None:
    for of_agent, expected in LEFT.items():
        entries = (await memory.long_term.list(*of_agent)).entries
        assert {(each.id, each.text, each.version) for each in entries} == expected


async def check_delivered_twice(memory: Memory) -> None:
    """Views of a ledger that delivers every event twice have the same entries."""
    ledger = MemoryLedger(unique_ids=False)
    async for batch in memory.admin.records():
        for _, data in batch.records:
            for _ in range(2):
                ledger.append_bytes(data)
    async with Memory(assemble(ledger, lambda namespace: MemoryStore())) as twice:
        await check_left(twice)


async def check_after_a_rebuild(memory: Memory) -> None:
    await memory.admin.rebuild()
    await memory.admin.rebuild(what="index")
    await check_left(memory)
    assert (await memory.admin.verify()).clean


def check_step(step: Any, answer: Retained) -> None:
    _, _, entry_id, _, nearest, similarity = step
    assert (answer.outcome, answer.id, answer.similarity) == ("stored", entry_id, similarity)
    named = None if answer.nearest is None else answer.nearest.id
    assert named == nearest or similarity == 0.0  # several may be as far
    if similarity:
        assert answer.format() == f"stored {entry_id}, nearest {nearest} (similarity {similarity:g})"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[EmbeddingEndpoint]:
    with embedding_endpoint(VECTORS) as running:
        yield running


def settings_of(home: Path, endpoint: EmbeddingEndpoint) -> Settings:
    return Settings(
        home=home,
        index="embedded",
        embedder=endpoint.name,
        index_idle_seconds=0,
        deadline_seconds=DEADLINE_SECONDS,
    )


@asynccontextmanager
async def indexed(memory: Memory) -> AsyncIterator[Memory]:
    """The memory, once its index can answer."""
    async with memory:
        await memory.publish(event())
        await memory.catch_up_index()
        yield memory


@pytest.mark.parametrize("form", ["served", "in this process"])
@pytest.mark.parametrize("behind", [False, True], ids=["indexed", "as fast as possible"])
def test_a_nearly_equal_text_is_stored_and_the_answer_names_the_nearest_entry(
    form: str, behind: bool, tmp_path: Path, endpoint: EmbeddingEndpoint
) -> None:
    async def work() -> None:
        settings = settings_of(tmp_path, endpoint)
        if form == "in this process":
            memory = Memory.open(settings, embedder=ChosenVectors(VECTORS))
        else:
            memory = Memory.open(settings)
        async with indexed(memory):
            for step in STEPS:
                of_agent, entry_type, entry_id, text, *_ = step
                if not behind:
                    await memory.catch_up_index()
                answer = await memory.long_term.retain(*of_agent, text, type=entry_type, entry_id=entry_id)
                check_step(step, answer)
            await check_left(memory)
            again = await memory.long_term.retain(*BAKER, A.rstrip("."))
            assert (again.outcome, again.id, again.reason, again.nearest) == ("skipped", "a", "equal", None)
            await check_delivered_twice(memory)
            await check_after_a_rebuild(memory)

    run(work())


def test_another_program_names_the_nearest_entry_of_this_one(tmp_path: Path, endpoint: EmbeddingEndpoint) -> None:
    """Both ask the process that serves the index of the folder."""

    async def work() -> None:
        async with indexed(Memory.open(settings_of(tmp_path, endpoint))) as memory:
            for number, step in enumerate(STEPS[:6]):
                of_agent, entry_type, entry_id, text, *_ = step
                if number % 2 == 0:
                    answer = await memory.long_term.retain(*of_agent, text, type=entry_type, entry_id=entry_id)
                else:
                    options = ["--type", entry_type, "--entry-id", entry_id, "--home", tmp_path, "--json"]
                    environment = {
                        "RECALLOG_EMBEDDER": endpoint.name,
                        "RECALLOG_DEADLINE_SECONDS": str(DEADLINE_SECONDS),
                    }
                    said = spawn("long-term", "retain", *of_agent, text, *options, **environment)
                    assert said.code == 0, said.err
                    answer = Retained.model_validate_json(said.out)
                check_step(step, answer)

    run(work())


@pytest.mark.parametrize("form", ["served", "in this process"])
def test_near_duplicates_are_proposed_and_archived_only_where_they_are_chosen(
    form: str, tmp_path: Path, endpoint: EmbeddingEndpoint
) -> None:
    async def work() -> None:
        async with Memory.open(Settings(home=tmp_path, index="off")) as unseen:
            for of_agent, entry_type, entry_id, text, *_ in STEPS:
                answer = await unseen.long_term.retain(*of_agent, text, type=entry_type, entry_id=entry_id)
                assert (answer.outcome, answer.nearest) == ("stored", None)
        settings = settings_of(tmp_path, endpoint)
        given = {"embedder": ChosenVectors(VECTORS)} if form == "in this process" else {}
        async with indexed(Memory.open(settings, **given)) as memory:
            deduplicate = memory.long_term.deduplicate
            ends = await memory.admin.ledger_ends()
            found = await deduplicate(*BAKER)
            assert {(each.kept, each.archived, each.similarity) for each in found.proposed} == {
                ("b", "a", 0.93),
                ("l", "near l", 0.86),
            }
            assert (found.merged, found.position) == ((), None)
            assert f"  near l: {NEAR_LESSON}\n  l: {LESSON}\n" in found.format()
            assert await memory.admin.ledger_ends() == ends
            await check_left(memory)
            chosen = await deduplicate(*BAKER, apply=True, only=["near l"])
            assert chosen.merged == ("near l",)
            rest = await deduplicate(*BAKER, apply=True)
            assert rest.merged == ("a",)
            assert (await deduplicate(*BAKER)).proposed == ()

    run(work())


# A reactor merges by the same rule.

MERGING = event("agent.configured", agent="baker", payload={"quality": {"deduplicate": True}})


async def statuses(memory: Memory, *ids: str) -> dict[str, tuple[str, str | None]]:
    found = {id_: (await memory.long_term.get(*BAKER, id_)).entry for id_ in ids}
    return {id_: (entry.status, entry.duplicate_of) for id_, entry in found.items() if entry is not None}


@pytest.mark.parametrize("form", ["served", "in this process"])
def test_a_reactor_merges_what_says_the_same_as_a_new_text_and_an_archived_entry_can_be_restored(
    form: str, tmp_path: Path, endpoint: EmbeddingEndpoint
) -> None:
    async def work() -> None:
        given = {"embedder": ChosenVectors(VECTORS)} if form == "in this process" else {}
        async with indexed(Memory.open(settings_of(tmp_path, endpoint), **given)) as memory:
            await memory.publish(MERGING)
            for of_agent, entry_type, entry_id, text, *_ in STEPS:
                priority = "critical" if entry_id in ("a", "near l") else "normal"
                await memory.long_term.retain(*of_agent, text, type=entry_type, entry_id=entry_id, priority=priority)
            reactions = await memory.react()
            assert len(reactions) == sum(step[0] == BAKER for step in STEPS)
            merged = {"a": ("archived", "b"), "near l": ("archived", "l")}
            assert await statuses(memory, "a", "b", "near l", "l") == merged | dict.fromkeys("bl", ("live", None))
            kept = [(await memory.long_term.get(*BAKER, id_)).entry for id_ in ("b", "l")]
            assert [entry and entry.priority for entry in kept] == ["critical", "critical"]
            await memory.long_term.restore(*BAKER, "a")
            assert not list(await memory.react())
            assert await statuses(memory, "a") == {"a": ("live", None)}

    run(work())


def test_nothing_is_due_for_an_agent_that_is_not_set_to_it(tmp_path: Path, endpoint: EmbeddingEndpoint) -> None:
    async def work() -> None:
        async with indexed(Memory.open(settings_of(tmp_path, endpoint))) as memory:
            for text in (A, B):
                await memory.long_term.retain(*BAKER, text)
            assert not list(await memory.pending())

    run(work())


def test_without_an_index_the_reactor_merges_nothing(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(Settings(home=tmp_path, index="off")) as memory:
            await memory.publish(MERGING)
            for id_, text in (("a", A), ("b", B)):
                await memory.long_term.retain(*BAKER, text, entry_id=id_)
            assert {each.kind for each in await memory.react()} == {"reaction.done"}
            assert await statuses(memory, "a", "b") == dict.fromkeys("ab", ("live", None))

    run(work())


def test_a_text_that_the_model_cannot_read_is_compared_with_the_newest_by_its_words(tmp_path: Path) -> None:
    async def work() -> None:
        memory = Memory.open(Settings(home=tmp_path, index="embedded"), embedder=ChosenVectors({}))
        async with indexed(memory):
            await memory.publish(MERGING)
            for id_, text in (("a", A), ("c", C), ("b", B)):
                await memory.long_term.retain(*BAKER, text, entry_id=id_)
            await memory.react()
            assert (await statuses(memory, "a", "b", "c"))["a"] == ("archived", "b")

    run(work())
