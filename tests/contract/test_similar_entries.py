"""Similar entries: the plain cosine of two texts, over what an agent owns or may read, also behind the index."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from contract.test_index_entries import changed, retained
from contract.test_index_store import Village, in_a_village
from recallog.models.long_term.similar import SimilarEntries, similar
from recallog.operations.parameters import At
from recallog.reading.readings import AgentReading
from recallog.retrieval.searcher import Searcher
from recallog_projections.index.embedders.embedder import Passage
from recallog_schemas.errors import IndexUnavailable
from support.events import event
from support.indexing import catch_up

pytestmark = pytest.mark.models("long_term")

TEXT = "The rye needs water."


async def asked(
    found: Village, agent: str = "baker", text: str = TEXT, *, owned: bool = True, types: Sequence[str] | None = None
) -> SimilarEntries:
    async def query(reading: AgentReading) -> SimilarEntries:
        asking = replace(reading, make_searcher=lambda: Searcher(index=found.asking))
        return await similar(asking, text, owned=owned, types=types, limit=5)

    return await found.memory._access.of_agent("village", agent, At(), query)


def ids(found: SimilarEntries) -> list[str]:
    return [one.row.id for one in found.found]


def cosine(found: Village, one: str, other: str) -> float:
    first, second = found.embedders["toy"].embed([Passage(one), Passage(other)])
    return round(float(np.dot(first.vector.astype(np.float64), second.vector.astype(np.float64))), 6)


@pytest.fixture(params=["indexed", "behind"])
def tell(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., None]:
    """Runs a test in a village, after publishing events that the index has, or has not, processed."""

    def run(work: Callable[[Village], Awaitable[None]], *events: object) -> None:
        async def whole(found: Village) -> None:
            await found.memory.publish_many(list(events))  # type: ignore[arg-type]
            if request.param == "indexed":
                await catch_up(found.indexing)
            await work(found)

        in_a_village(tmp_path, whole)

    return run


def test_the_most_similar_comes_first_with_the_cosine_of_both_texts(tell: Callable[..., None]) -> None:
    async def work(found: Village) -> None:
        answer = await asked(found)
        assert ids(answer)[0] == "same"
        assert answer.found[0].similarity == 1.0
        assert answer.model == "toy model"
        for one in answer.found:
            assert one.similarity == cosine(found, TEXT, one.row.text)
        assert [one.similarity for one in answer.found] == sorted(
            (one.similarity for one in answer.found), reverse=True
        )

    tell(work, retained("The horse is old."), retained(TEXT, id="same"), retained("The rye needs much water."))


def test_only_live_entries_of_the_owner_and_of_the_types_are_compared(tell: Callable[..., None]) -> None:
    async def work(found: Village) -> None:
        assert set(ids(await asked(found))) == {"own", "lesson"}
        assert ids(await asked(found, types=["lesson"])) == ["lesson"]
        assert set(ids(await asked(found, owned=False))) == {"own", "lesson", "to"}
        assert ids(await asked(found, "smith")) == []

    tell(
        work,
        event(payload={"text": TEXT}),
        retained("The rye needs water, mine.", id="own"),
        retained("The rye needs water, a lesson.", id="lesson", type="lesson"),
        retained("The rye needs water, the miller's.", "miller", id="private"),
        retained("The rye needs water, for the baker.", "miller", id="to", audience=["baker"]),
        retained("The rye needs water, wrong.", id="gone"),
        changed("erased", entries=["gone"]),
    )


def test_an_updated_entry_is_compared_by_its_present_text(tell: Callable[..., None]) -> None:
    async def work(found: Village) -> None:
        (one,) = (await asked(found)).found
        assert (one.row.version, one.similarity) == (2, cosine(found, TEXT, "The horse is old."))

    tell(work, retained(TEXT, id="rye"), changed("updated", entry="rye", text="The horse is old."))


def test_a_text_that_the_model_cannot_read_is_similar_to_none(tell: Callable[..., None]) -> None:
    async def work(found: Village) -> None:
        assert ids(await asked(found, text="黑麦")) == []
        assert set(ids(await asked(found))) == {"rye"}

    tell(work, retained(TEXT, id="rye"), retained("黑麦需要水", id="unreadable"))


def test_without_an_index_the_error_says_why(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        found.engine.down(IndexUnavailable("pulled"))
        with pytest.raises(IndexUnavailable, match="pulled"):
            await asked(found)

    in_a_village(tmp_path, work)


def test_captured_calls_of_tools_are_compared_like_other_entries(tell: Callable[..., None]) -> None:
    async def work(found: Village) -> None:
        assert ids(await asked(found, text="water: The rye is watered.")) == ["call"]

    setting = event("agent.configured", payload={"capture": {"enabled": True}})
    tell(work, setting, event("tool.used", id="call", payload={"tool": "water", "result": "The rye is watered."}))
