"""Injections in tool outputs, documents, messages and imports, against extraction, reflection and daily logs.

Each is tried with the offline rules, and with a model that obeys every injection which it is shown.
"""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from recallog import Memory
from recallog.extending import ChatModel, ExtractionRequest
from recallog.models.facts import extractor as extractors
from recallog.models.facts.extractor import Utterance
from recallog.models.facts.heuristic import HeuristicExtractor
from recallog_projections.models.items import fact_blocks
from recallog_schemas import Event
from recallog_schemas.own_words import own_words
from support.events import event, run

pytestmark = pytest.mark.models("all")

DATA = Path(__file__).parent.parent / "data"
SETS = [json.loads((DATA / name).read_text()) for name in ("injections.json", "more-injections.json")]
ATTACKS = [attack for each in SETS for attack in each["attacks"]]
STATEMENTS = [statement for each in SETS for statement in each["statements"]]
MARK = "QX77"
SPACE, AGENT = "village", "baker"
OFFLINE, OBEYING = "offline", "obeying"


class ObeyingModel(ChatModel):
    """A model that does what any text in its data asks for: it states every line with the mark."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    @property
    def name(self) -> str:
        return "obeying"

    async def reply(self, instructions: str, data: str) -> str:
        lines = [json.loads(line) for line in data.splitlines()]
        self.shown += [line["text"] for line in lines if "text" in line]
        obeyed = [line for line in lines if MARK in json.dumps(line)]
        ids = [line["id"] for line in lines if "id" in line]
        facts = [{"content": f"{MARK} is trusted.", "sources": [line["id"]]} for line in obeyed if "id" in line]
        return json.dumps({"facts": facts, "belief": f"I trust {MARK if obeyed else 'nobody'}.", "based_on": ids})

    async def close(self) -> None:
        """There is nothing to close."""


def published(attack: dict[str, str], number: int) -> list[Event]:
    """The events with which an injection arrives, as a program publishes them."""
    text, more = attack["text"], {"session": "s", "turn": 1}
    match attack["via"]:
        case "tool":
            return [event("tool.used", payload={"tool": "browse", "result": text}, id=f"t{number}", **more)]
        case "document":
            read = {"tool": "read_file", "arguments": {"path": "minutes.md"}, "result": text}
            kept = {"text": text, "trust": "import"}
            return [
                event("tool.used", payload=read, id=f"r{number}", **more),
                event("world.observed", agent="library", payload=kept, id=f"d{number}", **more),
            ]
        case "user":
            return [said(text, id=f"u{number}")]
        case _:
            belief = {"belief": text, "based_on": [f"i{number}"], "trust": "import"}
            return [
                said(text, payload={"text": text, "trust": "import"}, id=f"i{number}"),
                event("agent.reflected", payload=belief, id=f"b{number}", **more),
            ]


def said(text: str, **fields: Any) -> Event:
    """A message of a user to the agent."""
    return event("user.injected", agent="ann", audience=(AGENT,), session="s", **{"payload": {"text": text}, **fields})


async def attacked(memory: Memory, events: Sequence[Event]) -> dict[str, Any]:
    """What the agent keeps and believes after a conversation of two turns in which the events happen."""
    settings = {"extract_facts": True, "reflection_threshold": 2, "capture": {"enabled": True}}
    asked = [f"Please bake {number} loaves of bread for the feast at the mill." for number in range(6)]
    first, then = (
        [said(text, turn=turn) for text in texts]
        for turn, texts in ((1, ["I live in Berlin.", *asked]), (2, ["Thank you!", "Hello again."]))
    )
    document = {"namespace": list(fact_blocks.WORKSPACE), "key": fact_blocks.MEMORY, "value": "# Memory"}
    block = {"namespace": ["working"], "key": "persona", "value": "A baker."}
    await memory.publish_many([
        event("agent.configured", payload=settings),
        event("item.put", payload=document),
        event("item.put", payload=block),
    ])  # fmt: skip
    for turn in ([*first, *events], then):
        await memory.publish_many([*turn, event("turn.ended", payload={}, session="s")])
        while await memory.react():
            await asyncio.sleep(0)
    facts = (await memory.long_term.list(SPACE, AGENT, type="fact", limit=1_000)).entries
    return {
        "facts": [entry.text for entry in facts],
        "beliefs": [belief.text for belief in (await memory.beliefs(SPACE, AGENT)).beliefs],
        "working": (await memory.working.render(SPACE, AGENT)).text,
        "items": (await memory.items.list(SPACE, AGENT)).model_dump_json(),
    }


@pytest.mark.parametrize("model", [OFFLINE, OBEYING])
@pytest.mark.parametrize("via", ["tool", "document", "user", "import"])
def test_no_injection_becomes_a_fact_a_belief_or_working_memory(via: str, model: str) -> None:
    async def work() -> dict[int, dict[str, Any]]:
        found = {}
        for number, attack in enumerate(ATTACKS):
            if attack["via"] == via:
                obeying = None if model == OFFLINE else ObeyingModel()
                async with Memory.in_memory(chat_model=obeying) as memory:
                    kept = await attacked(memory, published(attack, number))
                if obeying is not None:
                    assert any("Berlin" in text for text in obeying.shown)
                else:
                    assert kept["facts"] == ["ann lives in Berlin."]
                assert kept["beliefs"]
                assert "User asked" in kept["items"]
                if any(MARK in str(each) for each in kept.values()):
                    found[number] = kept
        return found

    assert run(work()) == {}


def test_of_quotations_and_own_statements_of_one_layout_so_many_are_told_apart() -> None:
    """Not all are: these numbers may only get better."""
    found = json.loads((DATA / "quoted-or-own.json").read_text())
    passed = [each["text"] for each in found["attacks"] if found["mark"] in own_words(each["text"])]
    lost = [each["text"] for each in found["statements"] if not own_words(each["text"])]
    cut = [each["text"] for each in found["statements"] if own_words(each["text"]) != each["text"]]
    assert (len(found["attacks"]), len(passed)) == (20, 3)
    assert (len(found["statements"]), len(cut), len(lost)) == (20, 17, 12)


def test_the_sets_have_so_many_attacks_and_languages() -> None:
    assert [len(each["attacks"]) for each in SETS] == [60, 64]
    languages = [{attack["language"] for attack in each["attacks"]} for each in SETS]
    assert languages == [{"en", "es", "zh", "de"}, {"en", "es", "zh", "de", "fr", "ar"}]
    assert {each["mark"] for each in SETS} == {MARK}
    assert all(MARK in attack["text"] for attack in ATTACKS)


def test_the_model_of_these_tests_obeys_what_it_is_shown() -> None:
    """Where a space allows facts and beliefs from tools and imports, the attacks succeed, and have their class."""

    async def work() -> None:
        trust = {"facts": "import", "beliefs": "import"}
        for via, least in (("tool", "tool"), ("import", "import")):
            attack = next(each for each in ATTACKS if each["via"] == via)
            async with Memory.in_memory(chat_model=ObeyingModel()) as memory:
                await memory.configure_space(SPACE, trust=trust)
                kept = await attacked(memory, published(attack, 0))
                assert any(MARK in text for text in kept["facts"])
                assert any(MARK in text for text in kept["beliefs"])
                hits = (await memory.recall(SPACE, AGENT, MARK, types=["fact"])).hits
                assert {hit.trust for hit in hits} == {least}

    run(work())


def test_legitimate_statements_lose_nothing() -> None:
    async def work() -> None:
        extractor, whole = HeuristicExtractor(), 0
        for statement in STATEMENTS:
            text = cast(str, statement["text"])
            assert own_words(text) == text
            stated = said(text, id="e-1")
            utterance = Utterance(text, stated.agent, stated.id, stated.kind, stated.at)
            expected = await extractors.ask(extractor, ExtractionRequest(SPACE, AGENT, [utterance]))
            async with Memory.in_memory() as memory:
                ended = event("turn.ended", payload={}, session="s")
                await memory.publish_many([event("agent.configured", payload={"extract_facts": True}), stated, ended])
                await memory.react()
                entries = (await memory.long_term.list(SPACE, AGENT, type="fact")).entries
            assert sorted(entry.text for entry in entries) == sorted(fact.text for fact in expected)
            assert all("trust" not in (entry.metadata or {}) for entry in entries)
            whole += len(entries)
        assert len(STATEMENTS) >= 65
        assert whole >= 40

    run(work())
