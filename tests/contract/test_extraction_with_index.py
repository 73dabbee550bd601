"""Facts of turns where an index measures how similar entries are, in its own process and in this one."""

from pathlib import Path
from typing import Any

import pytest

from contract.test_near_duplicates import BAKER, VECTORS, A, B, C, indexed, settings_of
from recallog import Memory
from recallog.extending import Fact
from support.embedding_endpoint import embedding_endpoint
from support.events import event, recorded, run
from support.stub_extractor import StubExtractor
from support.toy_embedder import ChosenVectors

pytestmark = pytest.mark.models("facts")


@pytest.mark.models("conversations")
@pytest.mark.parametrize("form", ["served", "in this process"])
def test_a_fact_that_nearly_equals_one_of_an_earlier_turn_is_kept_beside_it(form: str, tmp_path: Path) -> None:
    async def work(settings: Any, given: dict[str, Any]) -> None:
        stub = StubExtractor()
        async with indexed(Memory.open(settings, extractor=stub, **given)) as memory:
            await memory.publish(event("agent.configured", payload={"extract_facts": True}))
            for text in (A, B, B, C):
                stub.found = [Fact(text)]
                await memory.publish_many([event(session="x1"), event("turn.ended", session="x1", payload={})])
                (reaction,) = await memory.react()
                assert reaction.kind == "reaction.done"
            entries = (await memory.long_term.list(*BAKER, type="fact")).entries
            assert [(each.text, each.version) for each in entries] == [(C, 1), (B, 1), (A, 1)]
            events = await recorded(memory)
            assert sum(each.kind == "memory.retained" for each in events) == 3

    with embedding_endpoint(VECTORS) as endpoint:
        given = {"embedder": ChosenVectors(VECTORS)} if form == "in this process" else {}
        run(work(settings_of(tmp_path, endpoint), given))


@pytest.mark.parametrize("form", ["served", "in this process"])
def test_a_comparison_says_what_retain_would_answer_and_writes_nothing(form: str, tmp_path: Path) -> None:
    async def work(settings: Any, given: dict[str, Any]) -> None:
        async with indexed(Memory.open(settings, **given)) as memory:
            compare = memory.long_term.compare
            assert (await compare(*BAKER, A)).format() == "stored"
            await memory.long_term.retain(*BAKER, A, entry_id="a")
            before = await memory.admin.ledger_ends()
            equal, near, far = (
                await compare(*BAKER, A),
                await compare(*BAKER, B),
                await compare(*BAKER, "Flour is dear."),
            )
            assert (equal.outcome, equal.id, equal.reason, equal.nearest) == ("skipped", "a", "equal", None)
            assert (near.outcome, near.id) == ("stored", None)
            assert near.nearest is not None
            assert (near.nearest.id, near.nearest.version, near.nearest.similarity) == ("a", 1, 0.93)
            assert (far.outcome, far.id) == ("stored", None)
            assert far.format().startswith("stored, nearest a (similarity ")
            assert await memory.admin.ledger_ends() == before
            payload = {"text": B, "nearest": near.nearest.model_dump()}
            await memory.publish(event("memory.retained", payload=payload))
            assert [each.text for each in (await memory.long_term.list(*BAKER)).entries] == [B, A]

    with embedding_endpoint(VECTORS) as endpoint:
        given = {"embedder": ChosenVectors(VECTORS)} if form == "in this process" else {}
        run(work(settings_of(tmp_path, endpoint), given))
