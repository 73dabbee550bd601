"""Streams of random histories compared with a brute-force search of all events."""

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallog.models.stream import queries as queries
from recallog.reading.readings import SpaceReading
from support.events import MOMENT
from support.finishing import finish
from support.folding import about, all_rows, folded, ledger_at, reading_of

pytestmark = pytest.mark.models("stream")

SEEDS = st.integers(0, 2**32)
BATCHES = st.sampled_from((1, 3, 1000))
AGENTS = ("baker", "miller", "smith")
NOON = datetime.fromisoformat(MOMENT)
WORDS = ("rye", "Rye", "sacks", "the", "mill", "nine", "面包", "twice.", "INSIGHT:", "insight:")
KINDS = {
    "agent.spoke": 0.5, "agent.thought": 0.4, "world.observed": 0.7, "agent.reflected": 0.85, "clue.found": 0.8,
    "tool.used": 0.4, "user.injected": 0.95, "session.started": 0.3, "clock.ticked": 0,
}  # fmt: skip

Fields = dict[str, Any]


def history(rng: random.Random, size: int) -> list[Fields]:
    made: list[Fields] = []
    for number in range(size):
        if made and rng.random() < 0.08:
            made.append(rng.choice(made))
            continue
        kind = rng.choice((*KINDS, "agent.spoke", "agent.reflected"))
        event: Fields = {
            "envelope": 1,
            "id": f"e-{number}",
            "space": rng.choice(("village", "village", "city")),
            "agent": rng.choice(AGENTS),
            "kind": kind,
            "turn": rng.randrange(9),
            "at": (NOON + timedelta(minutes=rng.randrange(-5_000, 5_000))).isoformat(),
            "payload": _payload(rng, kind),
        }
        if rng.random() < 0.3:
            event["audience"] = rng.sample(AGENTS, rng.randrange(3))
        made.append(event)
    return made


def _payload(rng: random.Random, kind: str) -> Fields:
    def text() -> str:
        return "".join(rng.choice(WORDS) + rng.choice((" ", " ", "\n", ". ")) for _ in range(rng.randrange(12)))

    if kind == "agent.reflected":
        listed = {"insights": [text() for _ in range(rng.randrange(4))]} if rng.random() < 0.5 else {}
        return {rng.choice(("belief", "text")): text(), **listed}
    if kind == "tool.used":
        return {"tool": "mill", "result": "nine sacks"}
    return {"clock.ticked": {}, "session.started": {"title": text()}}.get(kind, {"text": text()})


@dataclass(frozen=True)
class Expected:
    """One memory of a stream."""

    offset: int
    event: Fields
    type: str
    text: str

    @property
    def at(self) -> datetime:
        return datetime.fromisoformat(self.event["at"])

    def score(self, query: str | None, now: datetime) -> float:
        hours = max(0.0, (now - self.at).total_seconds() / 3600)
        wanted = set() if query is None else set(query.lower().split())
        share = 0.5 if query is None else len(wanted & set(self.text.lower().split())) / len(wanted)
        of_class = {"observation": 0.5, "reflection": 0.7, "insight": 0.9}[self.type]
        return 0.3 * 2.0 ** (-hours / 24) + 0.3 * of_class + 0.4 * share


def text_of(event: Fields) -> str:
    payload = event["payload"]
    if event["kind"] == "tool.used":
        return f"{payload['tool']}: {payload['result']}"
    return str(payload.get("belief", payload.get("text", "")))


def streams(events: Sequence[Fields], space: str, agent: str, until: datetime | None = None) -> list[Expected]:
    """The events of an agent's stream, in the order of the ledger."""
    found, seen = [], set()
    for offset, event in enumerate(events):
        if event["space"] != space or event["id"] in seen:
            continue
        seen.add(event["id"])
        if until is not None and datetime.fromisoformat(event["at"]) > until:
            continue
        is_its = event["agent"] == agent or agent in (event.get("audience") or ())
        if is_its and event["kind"] not in ("session.started", "clock.ticked") and text_of(event).strip():
            type_ = "reflection" if event["kind"] == "agent.reflected" else "observation"
            found.append(Expected(offset, event, type_, text_of(event)))
    return found


def insights(events: Sequence[Fields], space: str, agent: str, until: datetime | None = None) -> list[Expected]:
    """The insights of an agent, oldest first."""
    found, seen = [], set()
    for offset, event in enumerate(events):
        if (event["space"], event["agent"], event["kind"]) != (space, agent, "agent.reflected") or event["id"] in seen:
            continue
        seen.add(event["id"])
        if until is not None and datetime.fromisoformat(event["at"]) > until:
            continue
        lines = [line.strip() for line in re.split(r"\n", text_of(event))]
        texts = [line[8:].strip() for line in lines if line[:8].upper() == "INSIGHT:"]
        texts += [text.strip() for text in event["payload"].get("insights", [])]
        found += [Expected(offset, event, "insight", text) for text in dict.fromkeys(texts) if text]
    return found[-64:]


def check(reading: SpaceReading, events: Sequence[Fields], rng: random.Random, until: datetime | None = None) -> None:
    for space in ("village", "city"):
        for agent in (*AGENTS, "stranger"):
            own, marked = streams(events, space, agent, until), insights(events, space, agent, until)
            shown = finish(queries.newest_insights(about(reading, space, agent), 64)).insights
            assert [(each.id, each.text) for each in shown] == [(each.event["id"], each.text) for each in marked]
            for query in (None, "rye", "the NINE sacks the", "面包 twice."):
                now, limit = NOON + timedelta(minutes=rng.randrange(-6_000, 6_000)), rng.choice((1, 5, 1000))
                hits = finish(queries.recall(about(reading, space, agent), query, limit, now)).memories
                scores = sorted((each.score(query, now) for each in (*own, *marked)), reverse=True)[:limit]
                assert [hit.score for hit in hits] == pytest.approx(scores, abs=1e-6)
                known = {(each.offset, each.type, each.text): each for each in (*own, *marked)}
                for hit in hits:
                    expected = known[hit.position.offset, hit.type, hit.text]
                    assert (hit.id, hit.at, hit.agent) == (expected.event["id"], expected.at, expected.event["agent"])
                    assert hit.score == pytest.approx(expected.score(query, now), abs=1e-6)
            _check_summary(reading, space, agent, own, rng)


def _check_summary(reading: SpaceReading, space: str, agent: str, own: Sequence[Expected], rng: random.Random) -> None:
    since, end = (NOON + timedelta(minutes=rng.randrange(-6_000, 6_000)) for _ in range(2))
    first, last = rng.choice((None, since, own[0].at if own else since)), rng.choice((None, end))
    within = [each for each in own if (first is None or first <= each.at) and (last is None or each.at < last)]
    found = finish(queries.summarize(about(reading, space, agent), first, last))
    assert (found.memories, found.kept_from) == (len(within), None)
    assert bool(found.text) is bool(within)
    assert len(found.text) <= 400
    best = sorted(within, key=lambda each: (KINDS[each.event["kind"]], each.offset))[-64:]
    assert found.sources == tuple(each.event["id"] for each in sorted(best, key=lambda each: each.offset))


@settings(max_examples=40, deadline=None)
@given(SEEDS, BATCHES, st.booleans())
def test_streams_of_random_histories_are_those_of_the_oracle(seed: int, batch_records: int, unique_ids: bool) -> None:
    rng = random.Random(seed)
    events = history(rng, 100)
    values = [json.dumps(event).encode() for event in events]
    if unique_ids:  # such a ledger has each event once
        values = list(dict.fromkeys(values))
        events = [json.loads(data) for data in values]
    check(reading_of(*folded(ledger_at(values, unique_ids=unique_ids, batch_records=batch_records))), events, rng)


@settings(max_examples=15, deadline=None)
@given(SEEDS, st.integers(-5_000, 5_000))
def test_the_past_of_random_histories_is_that_of_the_oracle(seed: int, minutes: int) -> None:
    rng, until = random.Random(seed), NOON + timedelta(minutes=minutes)
    events = history(rng, 100)
    values = [json.dumps(event).encode() for event in events]
    past = reading_of(*folded(ledger_at(values, unique_ids=False), remember_until=until))
    check(past, events, rng, until)


@settings(max_examples=15, deadline=None)
@given(SEEDS)
def test_the_rows_are_the_same_in_batches_of_one_and_of_a_thousand(seed: int) -> None:
    values = [json.dumps(event).encode() for event in history(random.Random(seed), 120)]
    found = [all_rows(*folded(ledger_at(values, unique_ids=False, batch_records=records))) for records in (1, 1000)]
    assert found[0] == found[1]
