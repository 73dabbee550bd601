"""Random histories of consensus and dissent compared with a brute-force search of all events."""

import json
import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallog.models.consensus import queries as queries
from recallog.reading.readings import SpaceReading
from recallog_projections.models.consensus import projection as view
from support.consensus_oracle import Debates, debates, hash_of
from support.events import MOMENT
from support.finishing import finish
from support.folding import about, all_rows, folded, ledger_at, reading_of

pytestmark = pytest.mark.models("consensus")

SEEDS = st.integers(0, 2**32)
BATCHES = st.sampled_from((1, 3, 1000))
AGENTS = ("baker", "miller", "smith")
SPACES = ("village", "village", "city")
TOPICS = (
    "rate limiter design", "Design RATE limiter", "limiter", "rate limiter testing", "one two three four five",
    "one six seven eight nine ten", "one six seven eight nine", "面包 的 价格", "的 面包",
)  # fmt: skip
TYPES = ("risk_warning", "abstention", "minor_quibble")
NOON = datetime.fromisoformat(MOMENT)


def history(rng: random.Random, size: int) -> list[dict[str, Any]]:
    """Events of three agents in two spaces; some are delivered twice, name what comes later, or nothing at all."""
    made: list[dict[str, Any]] = []
    for number in range(size):
        if made and rng.random() < 0.08:
            made.append(rng.choice(made))
            continue
        kind = rng.choices(
            ("consensus.recorded", "dissent.recorded", "consensus.superseded", "space.configured"), (6, 5, 4, 0.4)
        )[0]
        event: dict[str, Any] = {
            "envelope": 1,
            "id": f"e-{number}",
            "space": rng.choice(SPACES),
            "agent": rng.choice(AGENTS),
            "kind": kind,
            "at": (NOON + timedelta(seconds=rng.randrange(-500, 500))).isoformat(),
            "payload": _payload(rng, kind, number),
        }
        if rng.random() < 0.3:
            event["audience"] = rng.sample(AGENTS, rng.randrange(3))
        made.append(event)
    return made


def _payload(rng: random.Random, kind: str, number: int) -> dict[str, Any]:
    def some_id() -> str:
        return f"e-{rng.randrange(max(0, number - 25), number + 3)}"

    if kind == "space.configured":
        return {"shared_kinds": rng.choice((None, [], ["dissent.recorded"], ["consensus.recorded", "agent.spoke"]))}
    if kind == "consensus.superseded":
        return {"consensus": some_id(), "by": some_id()}
    confidence = rng.choice((0, -0.0, 1, 0.5, 0.25, 0.5000001))
    if kind == "consensus.recorded":
        agreed = {"conclusion": "so be it", "confidence": confidence, "participating": [], "agreeing": []}
        superseding = {"supersedes": some_id()} if rng.random() < 0.3 else {}
        return {"topic": rng.choice(TOPICS), **agreed, **superseding}
    named = rng.choice(({"topic": rng.choice(TOPICS)}, {"consensus": some_id()}, {"consensus": some_id()}))
    if rng.random() < 0.2:
        named = {"topic": rng.choice(TOPICS), "consensus": some_id()}
    return {"type": rng.choice(TYPES), "content": "no", "confidence": confidence, **named}


def _bytes(events: Sequence[dict[str, Any]]) -> list[bytes]:
    return [json.dumps(event).encode() for event in events]


def check(reading: SpaceReading, space: str, expected: Debates, rng: random.Random) -> None:
    """What each agent finds is what the oracle says: by similarity, by topic, by hash and by id."""
    for agent in (*AGENTS, "stranger"):
        for topic in (*TOPICS, "unheard of"):
            least, limit = rng.choice((0.0, 0.5)), rng.choice((1, 3, 1000))
            found = finish(queries.find_similar(about(reading, space, agent), topic, limit, least)).found
            assert [(each.consensus.id, each.similarity) for each in found] == [
                (id_, round(float(similarity), 4)) for id_, similarity in expected.similar(agent, topic, least)[:limit]
            ], (agent, topic)
            for each in found:
                links = list(each.consensus.supersedes), each.consensus.superseded_by
                assert links == expected.linked(agent, each.consensus.id)
            wanted, asked = rng.choice((None, *TYPES)), rng.choice((topic, hash_of(topic)))
            objections = finish(queries.dissents(about(reading, space, agent), asked, wanted, limit)).dissents
            assert [(each.id, each.consensus) for each in objections] == (
                expected.objections(agent, topic, wanted)[:limit]
            ), (agent, topic)
        seen = {each.id for each in expected.seen(agent)}
        for said in expected.consensuses:
            by_id = finish(queries.by_id(about(reading, space, agent), said.id))
            assert (by_id is not None) is (said.id in seen)


@settings(max_examples=50, deadline=None)
@given(SEEDS, BATCHES, st.booleans())
def test_what_agents_find_in_random_histories_is_what_the_oracle_finds(
    seed: int, batch_records: int, unique_ids: bool
) -> None:
    rng = random.Random(seed)
    events = history(rng, 90)
    values = _bytes(events)
    if unique_ids:  # such a ledger has each event once
        values = list(dict.fromkeys(values))
        events = [json.loads(data) for data in values]
    reading = reading_of(*folded(ledger_at(values, unique_ids=unique_ids, batch_records=batch_records)))
    for space, expected in debates(events).items():
        check(reading, space, expected, rng)


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_the_rows_are_the_same_in_batches_of_one_and_of_a_thousand(seed: int) -> None:
    values = _bytes(history(random.Random(seed), 120))
    found = [all_rows(*folded(ledger_at(values, unique_ids=False, batch_records=records))) for records in (1, 1000)]
    assert found[0] == found[1]


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.integers(-500, 500))
def test_the_past_of_random_histories_is_that_of_the_oracle(seed: int, seconds: int) -> None:
    rng, until = random.Random(seed), NOON + timedelta(seconds=seconds)
    events = history(rng, 90)
    past = reading_of(*folded(ledger_at(_bytes(events), unique_ids=False), remember_until=until))
    for space, expected in debates(events, until).items():
        check(past, space, expected, rng)


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_no_consensus_has_two_successors_and_no_chain_is_a_circle(seed: int) -> None:
    events = history(random.Random(seed), 150)
    rows = all_rows(*folded(ledger_at(_bytes(events), unique_ids=False)))[view.ROWS.name]
    decoded = {(address[0], address[2]): view.ROWS.decode(data) for address, data in rows.items()}
    for (space, id_), row in decoded.items():
        for superseded in row.supersedes:
            assert decoded[space, superseded].superseded_by == id_
        chain, end = [id_], row
        while end.superseded_by is not None:
            assert end.superseded_by not in chain
            chain.append(end.superseded_by)
            successor = decoded[space, end.superseded_by]
            assert chain[-2] in successor.supersedes
            end = successor
