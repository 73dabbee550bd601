"""Pairs of facts and lessons that say the same, or differ in one detail: which of them long-term memory tells apart;
and which facts the offline extractor draws from turns.

Each pair is kept by an agent of its own through the public API, at first without an index; then near-duplicates are
merged. `python -m benchmarks.facts FILE` judges the pairs of another file, and prints those that are judged wrongly.
"""

import asyncio
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.measure import Goal, Measure, Setup
from recallog import Memory, Settings
from recallog.models.facts.extractor import ExtractionRequest, Utterance, ask
from recallog.models.facts.heuristic import HeuristicExtractor
from recallog_projections.index.embedders.onnx import OnnxEmbedder

TURNS = Path(__file__).parents[1] / "tests" / "data" / "turns-with-facts.jsonl"
"""Turns of Ada, each with the facts that are worth keeping."""
PAIRS = Path(__file__).parents[1] / "tests" / "data" / "pairs-of-facts.jsonl"
_SPACE = "pairs"
_TYPES = ("fact", "lesson")
_LOST, _RECOGNISED, _PRECISE = Goal("≤", 0), Goal("≥", 60), Goal("≥", 90)
_TOLD = datetime(2024, 6, 8, 12, tzinfo=UTC)

Pair = Mapping[str, Any]
Outcome = tuple[str, Pair]
"""What became of the second text of a pair: "kept", "duplicate" or "merged"."""


async def measure(setup: Setup) -> list[Measure]:
    pairs = read(PAIRS)
    outcomes = await judge(setup.folder / "facts", pairs[:: setup.size(1, 8)], setup.report)
    return [*(each for type_ in _TYPES for each in figures(type_, outcomes[type_])), *await extraction(read(TURNS))]


async def extraction(turns: Sequence[Mapping[str, Any]]) -> list[Measure]:
    """How many of the facts that are drawn from turns are worth keeping, and how many of these are drawn."""
    drawn, right, wanted = 0, 0, sum(len(turn["keep"]) for turn in turns)
    for turn in turns:
        said = [Utterance(turn["text"], "Ada", at=_TOLD)]
        facts = {each.text for each in await ask(HeuristicExtractor(), ExtractionRequest(_SPACE, "Ada", said))}
        drawn, right = drawn + len(facts), right + len(facts.intersection(turn["keep"]))
    return [
        Measure(
            f"extraction: of {drawn} facts of {len(turns)} turns worth keeping", 100 * right / drawn, "%", _PRECISE
        ),
        Measure(f"extraction: of {wanted} facts worth keeping drawn", 100 * right / wanted, "%", None),
    ]


def read(file: Path) -> list[Pair]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


async def judge(folder: Path, pairs: Sequence[Pair], report: Any) -> dict[str, list[Outcome]]:
    """By type of the entries: what becomes of each pair."""
    agents = [(type_, f"{type_}-{number}", pair) for type_ in _TYPES for number, pair in enumerate(pairs)]
    outcomes: dict[str, str] = {}
    report(f"facts: {len(pairs):,} pairs, as {' and '.join(_TYPES)}")
    async with Memory.open(Settings(home=folder, index="off")) as memory:
        for type_, agent, pair in agents:
            for text in (pair["a"], pair["b"]):
                outcome = (await memory.long_term.retain(_SPACE, agent, text, type=type_)).outcome
            outcomes[agent] = {"stored": "kept", "skipped": "duplicate"}[outcome]
    async with Memory.open(Settings(home=folder, index="embedded"), embedder=OnnxEmbedder()) as memory:
        await memory.catch_up_index()
        for _, agent, _ in agents:
            if (await memory.long_term.deduplicate(_SPACE, agent, apply=True)).merged:
                outcomes[agent] = "merged"
    return {each: [(outcomes[agent], pair) for type_, agent, pair in agents if type_ == each] for each in _TYPES}


def figures(type_: str, outcomes: Sequence[Outcome]) -> list[Measure]:
    lost = sum(outcome != "kept" for outcome, pair in outcomes if not pair["same"])
    same = [outcome for outcome, pair in outcomes if pair["same"]]
    measures = [Measure(f"{type_}s: different ones that are lost", lost, "pairs", _LOST)]
    found: list[str] = []
    for outcome, name in (("duplicate", "at write"), ("merged", "at write or merged later")):
        found.append(outcome)
        share = 100 * sum(each in found for each in same) / max(1, len(same))
        goal = _RECOGNISED if outcome == "merged" else None
        measures.append(Measure(f"{type_}s: same ones that are recognised {name}", share, "%", goal))
    return measures


def main(file: Path) -> int:
    pairs = read(file)
    with tempfile.TemporaryDirectory() as folder:
        outcomes = asyncio.run(judge(Path(folder) / "facts", pairs, print))
    for type_ in _TYPES:
        for each in figures(type_, outcomes[type_]):
            print(f"{each.name}: {each.value:g} {each.unit}" + (f" (goal {each.goal})" if each.goal else ""))
        for same in (False, True):
            counted = Counter((pair["lang"], outcome) for outcome, pair in outcomes[type_] if pair["same"] is same)
            print(f"  {'same' if same else 'different'}:", dict(sorted(counted.items())))
    for outcome, pair in outcomes["fact"]:
        if pair["same"] == (outcome == "kept"):
            print(f"{'kept twice' if pair['same'] else 'LOST'}: {pair['a']} | {pair['b']}")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else PAIRS))
