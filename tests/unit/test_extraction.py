"""Extraction of facts: which turns make it due, what of a turn is read, and what is kept of the answers."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallog import Event, Memory, ModelFailed, ModelMisconfigured, Settings
from recallog.composition import assemble
from recallog.extending import ExtractionRequest, Fact
from recallog.reactors.chat_endpoint import ChatEndpoint
from recallog_projections.models.facts import due
from recallog_projections.models.long_term import tables as entries
from recallog_projections.stores.memory import MemoryStore
from recallog_schemas import limits
from recallog_schemas.models.facts import limits as facts_limits
from recallog_schemas.models.long_term.views import EntryView
from recallog_streams.ledgers.memory import MemoryLedger
from support.chat_server import ChatServer, completion, facts, status
from support.events import event, recorded, run
from support.stub_extractor import StubExtractor

pytestmark = pytest.mark.models("conversations", "facts")

SPACE, AGENT = "village", "baker"
MONDAY = datetime(2023, 5, 1, tzinfo=UTC)
ACME = [
    {"content": "Acme Corp prefers React.", "entity": "Acme Corp", "category": "preference", "confidence": 0.9},
    {"content": "Acme Corp is based in Berlin.", "entity": "Acme Corp"},
]


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ignore the proxy settings of the developer."""
    monkeypatch.setenv("NO_PROXY", "*")


def configured(agent: str = AGENT, *, extract_facts: bool | None = True) -> Event:
    return event("agent.configured", agent=agent, payload={"extract_facts": extract_facts, "daily": {"enabled": False}})


def spoke(text: str, agent: str = AGENT, session: str | None = "x1", **fields: Any) -> Event:
    return event(agent=agent, session=session, **{"payload": {"text": text}, **fields})


def ended(agent: str = AGENT, session: str | None = "x1", **fields: Any) -> Event:
    return event("turn.ended", agent=agent, session=session, **{"payload": {}, **fields})


async def facts_of(memory: Memory, agent: str = AGENT) -> list[EntryView]:
    """The facts that an agent keeps, oldest first."""
    return list(reversed((await memory.long_term.list(SPACE, agent, type="fact", limit=1_000)).entries))


def test_a_turn_that_ends_is_due_for_an_agent_that_is_set_to_it_alone() -> None:
    async def work() -> None:
        async with Memory.in_memory(extractor=StubExtractor()) as memory:
            await memory.publish_many([ended(), ended("miller"), configured(), ended("miller"), ended(turn=7)])
            (pending,) = await memory.pending()
            assert (pending.kind, pending.agent, pending.events) == ("extraction.due", AGENT, 1)
            assert pending.format().startswith(f"{SPACE}  {AGENT}  extraction.due  1 turn  since ")
            (reaction,) = await memory.react()
            assert (reaction.kind, reaction.text) == ("reaction.done", "0 events")
            assert not await memory.pending()
            await memory.publish_many([configured(extract_facts=False), ended()])
            assert not await memory.pending()

    run(work())


def test_the_facts_of_a_turn_become_entries_of_its_agent_with_their_sources() -> None:
    async def work() -> None:
        with ChatServer(facts(ACME[0] | {"sources": ["e-2", "e-9"]}, ACME[1], {"content": " "}, {}, 7)) as server:
            async with Memory.in_memory(chat_model=ChatEndpoint(server.url, "small")) as memory:
                said = [
                    spoke("Acme Corp prefers React.", "user", id="e-1", audience=(AGENT,)),
                    spoke("They sit in Berlin.", "user", id="e-2", audience=(AGENT,)),
                ]
                await memory.publish_many([configured(), *said, ended(turn=4, at=MONDAY)])
                (reaction,) = await memory.react()
                assert (reaction.kind, reaction.text) == ("reaction.done", "2 events")
                first, second = await facts_of(memory)
                assert (first.text, first.entity, first.category) == (ACME[0]["content"], "Acme Corp", "preference")
                assert (first.confidence, first.sources) == (0.9, ("e-2",))
                assert (second.entity, second.sources) == ("Acme Corp", ("e-1", "e-2"))
                assert first.metadata == {"extractor": "small"}
                assert first.at == second.at == MONDAY
                assert {each.turn for each in await recorded(memory) if each.kind == "memory.retained"} == {4}
                assert not await memory.react()
                before = await recorded(memory)
                await memory.admin.rebuild()
                assert await recorded(memory) == before
                assert not await memory.pending()
                assert (await memory.admin.verify()).ok
        assert [line.get("text") for line in server.requests[0].lines] == [
            None, "Acme Corp prefers React.", "They sit in Berlin.",
        ]  # fmt: skip

    run(work())


def test_in_a_space_that_shares_its_entries_a_fact_is_shared_only_if_everybody_could_see_the_whole_turn() -> None:
    async def work() -> None:
        stub = StubExtractor("Acme Corp prefers React.")
        async with Memory.in_memory(extractor=stub) as memory:
            shared = {"shared_kinds": ["world.observed", "memory.retained"]}
            await memory.publish_many([event("space.configured", payload=shared), configured()])
            world = event("world.observed", agent="world", session="x1", payload={"text": "Rain."})
            await memory.publish_many([world, ended()])
            await memory.react()
            for number, private in enumerate(
                (
                    spoke("to me", "user", audience=(AGENT,)),
                    spoke("mine"),
                    event("agent.thought", session="x1", agent=AGENT, payload={"text": "hm"}),
                )
            ):
                # What the extractor says about its sources does not matter.
                stub.found = [Fact(f"The private fact {number} is known.", sources=[f"w{number}"])]
                await memory.publish_many([world.model_copy(update={"id": f"w{number}"}), private, ended()])
                await memory.react()
            assert len(await facts_of(memory)) == 4
            seen = (await memory.recall(SPACE, "user", "fact React", preset="four_channel")).hits
            assert [hit.text for hit in seen] == ["Acme Corp prefers React."]

    run(work())


@pytest.mark.parametrize(
    "replies",
    [[status(500)] * 3, [completion("I found nothing.")] * 3, [completion('{"facts": "none"}')] * 3],
    ids=["status", "no_json", "no_list"],
)
def test_an_extractor_that_fails_leaves_one_failure_and_the_memory_goes_on(replies: list[Any], tmp_path: Path) -> None:
    async def work() -> None:
        with ChatServer(*replies) as server:
            chosen = Settings.valid(home=tmp_path, index="off", model=f"{server.url}#small", ledger=None, views=None)
            async with Memory.open(chosen) as memory:
                await memory.publish_many([configured(), spoke("Acme Corp prefers React."), ended()])
                (reaction,) = await memory.react()
                assert reaction.kind == "reaction.failed"
                assert await facts_of(memory) == []
                await memory.publish(spoke("What now?"))
                assert not await memory.react()
                kinds = [each.kind for each in await recorded(memory)]
                assert kinds.count("reaction.failed") == 1
            assert len(server.requests) == 3

    run(work())


def test_with_every_event_delivered_twice_and_after_a_second_run_nothing_is_doubled() -> None:
    async def work() -> None:
        ledger, stub = (
            MemoryLedger(unique_ids=False),
            StubExtractor("Acme Corp prefers React.", "Acme Corp sells shoes."),
        )
        async with Memory(assemble(ledger, lambda namespace: MemoryStore()), extractor=stub) as memory:
            for each in [configured(), spoke("A."), ended(id="end"), spoke("B."), ended(id="end-2")]:
                await memory.publish(each)
                await memory.publish(each)
            while await memory.react():
                pass
            for data in [data async for batch in memory.admin.records() for _, data in batch.records]:
                ledger.append_bytes(data)
            assert not await memory.react()
            assert [each.text for each in await facts_of(memory)] == [each.text for each in stub.found]
            assert stub.read == [["A."], ["B."]]
            retained = [each for each in await recorded(memory) if each.kind == "memory.retained"]
            assert len({each.id for each in retained}) == 2  # the second turn has nothing new

    run(work())


def test_a_crash_between_the_facts_and_the_closing_event_asks_no_model_again() -> None:
    async def work() -> None:
        stub = StubExtractor("Acme Corp prefers React.")
        async with Memory.in_memory(extractor=stub) as memory:
            await memory.publish_many([configured(), spoke("A."), ended()])
            (pending,) = await memory.pending()
            written = event(
                "memory.retained", id=f"{pending.trigger}/answer/0123456789/1", payload={"text": "It was written."}
            )
            await memory.publish(written.model_copy(update={"causation_id": pending.trigger}))
            (reaction,) = await memory.react()
            assert reaction.text == "1 event"
            assert stub.asked == []
            assert [each.text for each in await facts_of(memory)] == ["It was written."]

    run(work())


# What of a turn is read.


@pytest.mark.models("beliefs")
def test_a_turn_is_what_its_agent_could_see_of_its_session_since_its_turn_before() -> None:
    async def work() -> None:
        stub = StubExtractor()
        async with Memory.in_memory(extractor=stub) as memory:
            await memory.publish_many([configured(), spoke("old"), ended()])
            await memory.publish_many(
                [
                    spoke("mine"),
                    spoke("of another session", session="x2"),
                    spoke("of no session", session=None),
                    spoke("private", "miller"),
                    spoke("to me", "miller", audience=(AGENT,)),
                    event("world.observed", agent="world", session="x1", payload={"text": "shared"}),
                    event("agent.reflected", session="x1", payload={"belief": "a belief"}),
                    event("session.started", session="x1", payload={"title": "a title"}),
                    event("memory.retained", session="x1", payload={"text": "an entry"}),
                    spoke("  "),
                    ended("miller"),
                    event("tool.used", session="x1", payload={"tool": "oven", "result": "hot"}),
                    ended(),
                    spoke("new"),
                    ended(session="x2"),
                    ended(session=None),
                ]
            )
            await memory.react()
        assert stub.read == [
            ["old"], ["mine", "to me", "shared"], ["of another session"], ["of no session"],
        ]  # fmt: skip

    run(work())


def test_the_turns_before_the_setting_end_where_they_ended() -> None:
    async def work() -> None:
        stub = StubExtractor()
        async with Memory.in_memory(extractor=stub) as memory:
            await memory.publish_many([spoke("before"), ended(), spoke("after"), configured(), ended()])
            await memory.react()
        assert stub.read == [["after"]]

    run(work())


def test_of_a_long_turn_the_newest_texts_are_read() -> None:
    async def work() -> None:
        stub = StubExtractor()
        async with Memory.in_memory(extractor=stub) as memory:
            await memory.publish_many([configured(), *(spoke(f"number {number}") for number in range(70)), ended()])
            await memory.publish_many([spoke("x" * 20_000), spoke("y" * 20_000), ended()])
            await memory.react()
        assert stub.read[0] == [f"number {number}" for number in range(70 - facts_limits.EXTRACTED_EVENTS, 70)]
        assert [len(text) for text in stub.read[1]] == [facts_limits.EXTRACTED_CHARS - 20_000, 20_000]

    run(work())


@pytest.mark.parametrize("others", [200, limits.LOG_EVENTS_KEPT + 10])
def test_a_turn_whose_events_the_views_have_dropped_is_read_as_of_its_end(others: int) -> None:
    async def work() -> None:
        stub = StubExtractor()
        async with Memory.in_memory(extractor=stub) as memory:
            await memory.publish_many([configured(), spoke("one"), spoke("two"), ended()])
            await memory.publish_many([spoke(f"other {number}", session="x2") for number in range(others)])
            await memory.react()
        assert stub.read == [["one", "two"]]

    run(work())


# What is kept.


def test_a_fact_is_kept_once_and_passes_the_quality_gate() -> None:
    async def work() -> None:
        stub = StubExtractor(
            "Acme Corp prefers React.", "acme corp PREFERS React.", "Too short.", "ACTION: he ran far away"
        )
        async with Memory.in_memory(extractor=stub) as memory:
            quality = event("agent.configured", payload={"quality": {"enabled": True}})
            kept = await memory.long_term.retain(SPACE, AGENT, "Beta supplies Gamma Industries.")
            stub.found.append(Fact("Beta supplies  Gamma Industries."))
            await memory.publish_many([configured(), quality, spoke("A."), ended()])
            (reaction,) = await memory.react()
            assert reaction.text == "1 event"
            first, second = await facts_of(memory)
            assert (first.id, second.text) == (kept.id, "Acme Corp prefers React.")

    run(work())


def test_facts_cost_nothing_and_are_about_the_one_person_of_their_sources() -> None:
    async def work() -> None:
        stub = StubExtractor(
            Fact("Anna lives in Ulm.", sources=["e-1"]), Fact("Ben lives in Bonn.", sources=["e-2", "e-3"]), "Both met."
        )
        async with Memory.in_memory(extractor=stub) as memory:
            granted = event("memory.metered", payload={"units": 1})
            said = [spoke("A.", id="e-1", subject="anna"), spoke("B.", id="e-2", subject="ben"), spoke("C.", id="e-3")]
            await memory.publish_many([granted, configured(), *said, ended()])
            await memory.react()
            assert [each.subject for each in await facts_of(memory)] == ["anna", "ben"]
            assert (await memory.long_term.stats(SPACE, AGENT)).balance == 1
            await memory.long_term.forget(SPACE, AGENT, subject="ben")
            assert [each.text for each in await facts_of(memory)] == ["Anna lives in Ulm."]

    run(work())


def test_answers_of_extractors_are_bounded_and_put_into_form() -> None:
    odd = [
        Fact("  Acme\n Corp\x00 prefers   React. ", "x" * 500, " ", float("nan"), ["e-1", "e-1", "unknown"]),
        Fact("y" * 10_000, confidence=7.0),
        *(Fact(f"Fact number {number}.") for number in range(100)),
    ]

    async def work() -> None:
        async with Memory.in_memory(extractor=StubExtractor(*odd)) as memory:
            await memory.publish_many([configured(), spoke("A.", id="e-1"), ended()])
            await memory.react()
            found = await facts_of(memory)
            assert len(found) == facts_limits.EXTRACTED_FACTS_MAX
            assert (found[0].text, found[0].entity, found[0].category) == ("Acme Corp prefers React.", "x" * 128, None)
            assert (found[0].confidence, found[0].sources) == (1.0, ("e-1",))
            assert len(found[1].text) == facts_limits.FACT_CHARS_MAX

    run(work())


# Failures.


def test_an_extractor_without_a_model_stops_nothing_but_extraction() -> None:
    async def work() -> None:
        stub = StubExtractor(error=ModelMisconfigured("the key is wrong"))
        async with Memory.in_memory(extractor=stub) as memory:
            notes = {"namespace": ["session", "x1"], "key": "k", "value": "NOTE: keep me"}
            await memory.publish_many([configured(), spoke("A."), ended(), spoke("B."), ended()])
            await memory.publish_many(
                [event("item.put", payload=notes), event("session.ended", session="x1", payload={})]
            )
            with pytest.raises(ModelMisconfigured, match="the key is wrong"):
                await memory.react()
            assert len(stub.asked) == 1
            assert [each.kind for each in await memory.pending()] == ["extraction.due"] * 2
            kept = (await memory.long_term.list(SPACE, AGENT)).entries
            assert [each.text for each in kept] == ["NOTE: keep me"]
            stub.error, stub.found = None, [Fact("Now it works.")]
            await memory.react()
            assert [each.text for each in await facts_of(memory)] == ["Now it works."]

    run(work())


def test_the_rest_of_an_erasure_does_not_wait_for_a_model() -> None:
    async def work() -> None:
        statuses: list[str | None] = []

        class Looking(StubExtractor):
            async def extract(self, request: ExtractionRequest) -> Sequence[Fact]:
                ref = await memory.row(entries.IDS, SPACE, "", "c")
                statuses.append(None if ref is None else ref.status)
                return await super().extract(request)

        async with Memory.in_memory(extractor=Looking("Acme Corp prefers React.")) as memory:
            await memory.publish_many([configured(), *(each for n in range(100) for each in (spoke(f"{n}"), ended()))])
            for id_, source in (("a", []), ("b", ["a"]), ("c", ["b"])):
                payload = {"text": f"About {id_}.", "sources": source}
                await memory.publish(event("memory.retained", id=id_, payload=payload))
            await memory.publish(event("memory.erased", payload={"entries": ["a"]}))
            assert len(await memory.react()) == 101
            assert statuses == ["retracted"] * 100

    run(work())


@pytest.mark.parametrize("error", [ModelFailed("refused", retryable=False), KeyError("content")])
def test_whatever_an_extractor_raises_closes_the_trigger(error: Exception) -> None:
    async def work() -> None:
        stub = StubExtractor(error=error)
        async with Memory.in_memory(extractor=stub) as memory:
            await memory.publish_many([configured(), spoke("A."), ended()])
            (reaction,) = await memory.react()
            assert reaction.kind == "reaction.failed"
            assert not await memory.pending()
            assert await memory.row(due.TURNS, SPACE, AGENT, "x1") == due.TurnEnd(2)
        assert stub.closed == 1

    run(work())


def test_in_the_background_the_turn_does_not_wait_for_the_extractor() -> None:
    async def work() -> None:
        began, may_end = asyncio.Event(), asyncio.Event()

        class Slow(StubExtractor):
            async def extract(self, request: ExtractionRequest) -> Sequence[Fact]:
                began.set()
                await may_end.wait()
                return await super().extract(request)

        async with Memory.in_memory(reactors=True, extractor=Slow("Acme Corp prefers React.")) as memory:
            await memory.publish_many([configured(), spoke("A."), ended()])
            await began.wait()
            await memory.publish(spoke("The turn goes on."))
            assert "The turn goes on." in (await memory.episodic(SPACE, AGENT)).format()
            may_end.set()
            while not await facts_of(memory):
                await asyncio.sleep(0.01)

    run(work())


# The call.


def test_a_text_gives_facts_that_are_retained() -> None:
    async def work() -> None:
        stub = StubExtractor(Fact("Acme Corp prefers React.", "Acme Corp", "preference", 0.8), "Acme Corp sells shoes.")
        async with Memory.in_memory(extractor=stub) as memory:
            found = await memory.long_term.extract_facts(
                SPACE, AGENT, "A long call.", source="a call", based_on=["e-1"], subject="anna"
            )
            first, second = await facts_of(memory)
            assert found.ids == (first.id, second.id)
            assert found.ok
            assert [each.outcome for each in found.retained] == ["stored", "stored"]
            assert (first.entity, first.category, first.confidence) == ("Acme Corp", "preference", 0.8)
            assert (first.source, first.sources, first.subject) == ("a call", ("e-1",), "anna")
            assert [(said.agent, said.text) for said in stub.asked[0].utterances] == [(AGENT, "A long call.")]
            again = await memory.long_term.extract_facts(SPACE, AGENT, "A long call.", subject="anna")
            assert (again.ids, again.format().count("duplicate of")) == (found.ids, 2)

    run(work())


def test_a_call_whose_extractor_fails_has_no_facts_and_says_why() -> None:
    async def work() -> None:
        stub = StubExtractor(error=ModelFailed("the model is away", retryable=False))
        async with Memory.in_memory(extractor=stub) as memory:
            found = await memory.long_term.extract_facts(SPACE, AGENT, "A long call.")
            assert (found.ids, found.failed, found.ok) == ((), "the model is away", False)
            assert found.format() == "failed: the model is away"
            assert await recorded(memory) == []

    run(work())


def test_a_call_without_a_model_uses_the_offline_rule() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            found = await memory.long_term.extract_facts(SPACE, AGENT, "Acme Corp prefers React. How are you?")
            (fact,) = await facts_of(memory)
            assert (fact.text, fact.entity) == ("Acme Corp prefers React.", "Acme Corp")
            assert found.ids == (fact.id,)
            assert fact.metadata == {"extractor": "heuristic-4"}

    run(work())


# Random histories.

agents, sessions = st.sampled_from([AGENT, "miller"]), st.sampled_from(["x1", "x2", None])
steps = st.one_of(
    st.tuples(st.just("says"), agents, sessions, st.booleans()),
    st.tuples(st.just("shares"), agents, sessions, st.just(False)),
    st.tuples(st.just("ends"), agents, sessions, st.just(False)),
    st.tuples(st.just("sets"), agents, st.none(), st.booleans()),
    st.tuples(st.just("reacts"), agents, st.none(), st.just(False)),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(steps, max_size=30), st.booleans())
def test_each_turn_is_read_once_with_all_that_its_agent_could_see(
    history: list[tuple[str, str, str | None, bool]], twice: bool
) -> None:
    """The expected texts are those of the events themselves, from the first one on."""
    expected: list[list[str]] = []
    heard: dict[tuple[str, str | None], list[str]] = {}
    is_set: dict[str, bool] = {}

    async def work() -> None:
        stub = StubExtractor()
        ledger = MemoryLedger(unique_ids=not twice)
        async with Memory(assemble(ledger, lambda namespace: MemoryStore()), extractor=stub) as memory:
            for number, (what, agent, session, flag) in enumerate(history):
                if what == "reacts":
                    await memory.react()
                    continue
                text = f"text {number}"
                for _ in range(1 + twice):
                    await memory.publish(_step(number, what, agent, session, flag, text))
                if what == "says" or what == "shares":
                    both = what == "shares" or flag
                    for reader in (AGENT, "miller") if both else (agent,):
                        heard.setdefault((reader, session), []).append(text)
                elif what == "sets":
                    is_set[agent] = flag
                elif what == "ends":
                    texts = heard.pop((agent, session), [])
                    if is_set.get(agent):
                        expected.append(texts)
            await memory.admin.rebuild()
            while await memory.react():
                pass
        assert stub.read == [texts for texts in expected if texts]

    run(work())


def _step(number: int, what: str, agent: str, session: str | None, flag: bool, text: str) -> Event:
    id_ = f"e-{number}"
    if what == "says":
        audience = (AGENT, "miller") if flag else None
        return spoke(text, agent, session, id=id_, audience=audience)
    if what == "shares":
        return event("world.observed", agent=agent, session=session, id=id_, payload={"text": text})
    if what == "ends":
        return ended(agent, session, id=id_)
    return event("agent.configured", agent=agent, id=id_, payload={"extract_facts": flag})
