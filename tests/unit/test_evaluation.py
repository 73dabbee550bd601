"""Evaluation: evidence in the spellings of annotators, figures worked out by hand, and comparison of results."""

import asyncio
import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from recallog import Event, Memory
from recallog.retrieval.channels import DEFAULT_CHANNELS, RANKED
from recallog_eval import baselines, facts, locomo, locomo_questions, metrics, result
from recallog_eval.locomo_questions import Misplaced, Question, Questions, Turn
from recallog_eval.result import Answered, Comparison, Elsewhere, FileResult, Hit, Result, Run, Used
from recallog_projections.index.embedders import registry
from recallog_schemas.errors import InvalidEvent, SettingsError
from support import real_data
from support.cli import recallog
from support.toy_embedder import ToyEmbedder

# Questions


def sample(*questions: object, sample_id: str = "conv-1") -> dict[str, Any]:
    turns = [
        {"speaker": name, "dia_id": f"D1:{n}", "text": f"Word {n}."} for n, name in enumerate(("Ann B.", "Bob"), 1)
    ]
    dated = {"session_1": turns, "session_1_date_time": "1:56 pm on 8 May, 2023"}
    return {
        "sample_id": sample_id,
        "conversation": {"speaker_a": "Ann B.", "speaker_b": "Bob", **dated},
        "qa": questions,
    }


def asking(evidence: object, category: object = 1, question: object = "What?") -> dict[str, Any]:
    return {"question": question, "answer": "That.", "evidence": evidence, "category": category}


def read(*samples: object) -> Questions:
    return locomo_questions.read(json.dumps(samples).encode())


@pytest.mark.parametrize(
    ("given", "ids"),
    [
        (["D1:3"], ("D1:3",)),
        (["D8:6; D9:17"], ("D8:6", "D9:17")),
        (["D9:1 D4:4"], ("D9:1", "D4:4")),
        (["D9:1,D4:4", "D2:2"], ("D9:1", "D4:4", "D2:2")),
        (["D:11:26"], ("D11:26",)),
        (["D30:05"], ("D30:5",)),
        (["D1:3", "D1:03"], ("D1:3",)),
        (["D"], ()),
        (["", None], ()),
        ([], ()),
    ],
)
def test_the_spellings_of_evidence_are_normalized_to_turn_ids(given: list[object], ids: tuple[str, ...]) -> None:
    assert locomo_questions.evidence_ids(given) == ids


def test_a_question_is_asked_by_a_speaker_in_the_space_of_its_conversation() -> None:
    assert read(sample(asking(["D1:2 D1:01"], 4)), sample(asking(["D1:1"]), sample_id="conv-2")).asked == (
        Question("conv-1", 1, "Ann B.", "What?", 4, ("D1:2", "D1:1")),
        Question("conv-2", 1, "Ann B.", "What?", 1, ("D1:1",)),
    )


@pytest.mark.parametrize("evidence", [[], None, ["D"], ["D7:1"], ["D1:3"]])
def test_a_question_whose_evidence_is_no_turn_is_skipped_and_counted(evidence: object) -> None:
    questions = read(sample(asking(evidence), asking(["D1:1"])))
    assert [question.number for question in questions.asked] == [2]
    assert questions.skipped == 1


def test_a_question_is_measured_by_the_evidence_that_is_a_turn() -> None:
    questions = read(sample(asking(["D1:2", "D7:1"])))
    assert questions.asked[0].evidence == ("D1:2",)
    assert (questions.skipped, questions.unresolved) == (0, 1)


@pytest.mark.parametrize(
    "broken",
    [17, {}, asking(["D1:1"], 6), asking(["D1:1"], [1]), asking("D1:1"), asking(["D1:1"], question=None)],
)
def test_an_invalid_question_is_refused_with_its_location(broken: object) -> None:
    with pytest.raises(InvalidEvent, match="conv-1: question 2 needs a question, a list of evidence"):
        read(sample(asking(["D1:1"]), broken))


def test_a_file_with_an_invalid_part_is_refused_completely() -> None:
    with pytest.raises(InvalidEvent, match="conversation: not an object"):
        read(sample(asking(["D1:1"])), 17)


# Metrics


def test_recall_is_the_fraction_of_the_evidence_that_the_first_hits_show() -> None:
    ranks = metrics.ranks_of([*"axbyzc"], "abcd")
    assert ranks == (1, 3, 6)
    assert [metrics.recall_at(k, ranks, 4) for k in (1, 5, 20)] == [0.25, 0.5, 0.75]
    assert metrics.recall_at(20, (), 1) == 0


def test_the_reciprocal_rank_is_that_of_the_first_evidence_within_twenty() -> None:
    others = ["x"] * 19
    assert metrics.reciprocal_rank(metrics.ranks_of([*"xba"], "ab")) == 0.5
    assert metrics.reciprocal_rank(metrics.ranks_of([*others, "a"], "a")) == 1 / 20
    assert metrics.reciprocal_rank(metrics.ranks_of([*others, "x", "a"], "a")) == 0


def test_evidence_that_several_hits_show_counts_once_and_one_hit_may_show_several() -> None:
    assert metrics.ranks_of([("a",), ("x", "a"), ("b", "c"), ("c",)], "abc") == (1, 3, 3)


def test_sessions_are_ranked_by_their_first_hit_and_what_is_no_turn_is_of_none() -> None:
    hits = [("D2:1",), ("D2:9",), ("note",), ("D7:1", "D3:4"), ("D1:1",)]
    assert metrics.session_ranks(hits, ["D3:1", "D1:7", "D1:8", "D9:1"]) == (3, 4)
    assert metrics.session_ranks([("D2:1",)] * 20 + [("D1:1",)], ["D1:1"]) == ()


def test_a_percentile_is_a_value_that_was_measured() -> None:
    values = [float(n) for n in range(20, 0, -1)]
    assert [metrics.percentile(values, percent) for percent in (0, 50, 95, 100)] == [1, 10, 19, 20]
    assert metrics.percentile([7.0], 95) == 7


def test_identical_runs_have_no_difference() -> None:
    same = metrics.paired([0.0, 0.5, 1.0] * 20, [0.0, 0.5, 1.0] * 20)
    assert (same.difference, same.low, same.high, same.wins, same.losses) == (0, 0, 0, 0, 0)
    assert not same.significant


def test_a_clearly_better_run_has_an_interval_without_zero() -> None:
    better = metrics.paired([0.0] * 60 + [1.0] * 40, [1.0] * 30 + [0.0] * 30 + [1.0] * 38 + [0.0] * 2)
    assert (better.difference, better.wins, better.losses) == (pytest.approx(0.28), 30, 2)
    # The normal approximation: .28 ± 1.96 · sqrt(mean of squares - square of the mean) / sqrt(100).
    half = 1.96 * math.sqrt((0.32 - 0.28**2) / 100)
    assert (better.low, better.high) == (pytest.approx(0.28 - half, abs=0.01), pytest.approx(0.28 + half, abs=0.01))
    assert better.significant
    worse = metrics.paired([1.0] * 50, [0.5] * 50)
    assert (worse.low, worse.high, worse.losses) == (-0.5, -0.5, 50)
    assert worse.significant


def test_a_few_wins_and_losses_are_insignificant_and_the_interval_is_reproducible() -> None:
    before, after = [0.0] * 97 + [1.0] * 3, [1.0] * 5 + [0.0] * 95
    noise = metrics.paired(before, after)
    assert noise.low < 0 < noise.high
    assert not noise.significant
    assert metrics.paired(before, after) == noise


def test_runs_of_different_length_are_not_paired() -> None:
    with pytest.raises(ValueError, match="2 before, 1 after"):
        metrics.paired([1.0, 1.0], [1.0])


# Results


QUESTIONS = (
    Question("conv-1", 1, "Ann", "one?", 1, ("a", "b")),
    Question("conv-1", 2, "Ann", "four?", 4, ("c",)),
    Question("conv-2", 1, "Cid", "four?", 4, ("d",)),
    Question("conv-2", 2, "Cid", "never?", 5, ("e",)),
)
HITS: dict[tuple[str, str], list[str]] = {
    ("conv-1", "one?"): ["a", "x", "x2", "x3", "x4", "b"],
    ("conv-1", "four?"): ["x", "x2", "x3", "c"],
    ("conv-2", "four?"): ["c"],
    ("conv-2", "never?"): ["e"],
}
WEAK = {"b", "e", "x", "x2"}


def answers_of(questions: Sequence[Question] = QUESTIONS, **more: list[str]) -> tuple[Answered, ...]:
    """The answers of a memory that recalls `HITS`; `more` replaces the hits of the question "four?" of a space."""

    async def ask(space: str, agent: str, question: str) -> list[Hit]:
        assert agent == {"conv-1": "Ann", "conv-2": "Cid"}[space]
        ids = HITS[space, question]
        if question == "four?":
            ids = more.get(space.replace("-", "_"), ids)
        return [Hit(id_, weak=id_ in WEAK) for id_ in ids]

    return asyncio.run(result.answers_of(questions, ask))


USED = Used(recallog="1", index="embedded", channels=("keyword", "structure"))


def run_of(answers: tuple[Answered, ...], name: str = "default") -> Run:
    return Run(name=name, used=USED, summary=result.summary_of(answers, ["no model"]), answers=answers)


def result_of(*runs: Run, digest: str = "00") -> Result:
    file = FileResult(file="locomo.json", file_sha256=digest, skipped=2, unresolved=1, runs=runs)
    return Result(files=(file,))


def test_figures_are_means_over_questions_with_adversarial_ones_reported_separately() -> None:
    summary = result.summary_of(answers_of())
    assert summary.overall is not None
    assert summary.adversarial is not None
    assert summary.overall.model_dump() == pytest.approx(
        {
            "questions": 3,
            "recall_at_5": (0.5 + 1 + 0) / 3,
            "recall_at_10": 2 / 3,
            "recall_at_20": 2 / 3,
            "mrr": 1.25 / 3,
        }
    )
    assert {category: figures.questions for category, figures in summary.by_category.items()} == {1: 1, 4: 2}
    assert summary.by_category[4].mrr == pytest.approx(0.125)
    assert (summary.adversarial.questions, summary.adversarial.recall_at_5) == (1, 1)


def test_an_answer_keeps_its_hits_their_ranks_and_its_time() -> None:
    first = answers_of()[0]
    assert first.hits == ("a", "x", "x2", "x3", "x4", "b")
    assert first.ranks == (1, 6)
    assert first.seconds >= 0


def test_evidence_is_lost_if_its_hit_is_weak_and_adversarial_questions_are_reported_separately() -> None:
    weak = result.summary_of(answers_of()).weak
    assert (weak.evidence_at_5, weak.evidence_at_10, weak.evidence_at_20) == (
        0,
        pytest.approx(1 / 3),
        pytest.approx(1 / 3),
    )
    assert (weak.nothing_close, weak.nothing_close_adversarial) == (0, 1)
    nothing_answers = result.summary_of(answers_of(QUESTIONS[1:2], conv_1=["x", "x2"])).weak
    assert (nothing_answers.evidence_at_20, nothing_answers.nothing_close) == (None, 1)
    assert nothing_answers.nothing_close_adversarial is None


def test_an_answer_has_nothing_close_if_its_first_five_hits_are_weak() -> None:
    (answer,) = answers_of(QUESTIONS[1:2], conv_1=["x", "x2", "x", "x2", "x", "c"])
    assert answer.weak == (True, True, True, True, True, False)
    assert answer.nothing_close


def test_a_question_is_asked_in_the_next_conversation_also_with_the_names_of_its_speakers() -> None:
    speakers = {"conv-1": ("Ann", "Bob"), "conv-2": ("Cid", "Dee")}
    questions = (
        Question("conv-1", 1, "Ann", "Did Bob see Ann's boat?", 1, ("a",)),
        Question("conv-2", 1, "Cid", "Where is the boat?", 4, ("b",)),
        Question("conv-2", 2, "Cid", "Did Dee sink it?", 5, ("c",)),
    )
    misplaced = locomo_questions.misplaced(questions, speakers)
    assert misplaced == (
        Misplaced("conv-2", "Cid", "Did Bob see Ann's boat?", "Did Dee see Cid's boat?"),
        Misplaced("conv-1", "Ann", "Where is the boat?", None),
    )
    assert locomo_questions.misplaced(questions[:1], {"conv-1": ("Ann", "Bob")}) == ()

    async def ask(space: str, agent: str, question: str) -> list[Hit]:
        assert agent == speakers[space][0]
        return [Hit("a", weak=True), Hit("b", weak="Dee" not in question)]

    found = asyncio.run(result.elsewhere_of(misplaced, ask))
    assert found == Elsewhere(questions=2, nothing_close=1, renamed=1, nothing_close_renamed=0)
    assert asyncio.run(result.elsewhere_of((), ask)) is None


def test_hits_beyond_twenty_are_not_counted() -> None:
    (answer,) = answers_of(QUESTIONS[1:2], conv_1=[f"x{n}" for n in range(20)] + ["c"])
    assert len(answer.hits) == 20
    assert answer.values() == {"recall_at_5": 0, "recall_at_10": 0, "recall_at_20": 0, "mrr": 0}


def test_a_fact_counts_as_the_events_that_it_was_drawn_from_each_once() -> None:
    async def ask(space: str, agent: str, question: str) -> list[Hit]:
        return [
            Hit("f1", sources=("x", "a")),
            Hit("a"),
            Hit("f2", weak=True, sources=("b",)),
            Hit("f3", sources=("b",)),
        ]

    (answer,) = asyncio.run(result.answers_of(QUESTIONS[:1], ask))
    assert (answer.hits, answer.ranks) == (("f1", "a", "f2", "f3"), (1, 3))
    assert answer.facts == {"f1": ("x", "a"), "f2": ("b",), "f3": ("b",)}
    assert answer.values() == {"recall_at_5": 1, "recall_at_10": 1, "recall_at_20": 1, "mrr": 1}
    assert result.summary_of([answer]).weak.evidence_at_5 == 0.5


def test_progress_counts_questions() -> None:
    seen: list[tuple[int, int]] = []

    async def ask(space: str, agent: str, question: str) -> list[Hit]:
        return []

    asyncio.run(result.answers_of(QUESTIONS, ask, lambda done, total: seen.append((done, total))))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


def of_sessions(*hits: str, category: int = 1) -> Answered:
    async def ask(space: str, agent: str, question: str) -> list[Hit]:
        return [Hit(id_) for id_ in hits]

    evidence = ("D6:1", "D6:2", "D9:1")
    (answer,) = asyncio.run(result.answers_of([Question("conv-1", 1, "Ann", "one?", category, evidence)], ask))
    return answer


def test_a_session_counts_once_however_many_turns_of_it_are_evidence_or_hits() -> None:
    answer = of_sessions("D1:1", "D1:2", "D6:7", "D2:1", "D3:1", "D4:1", "D9:3")
    assert answer.session_values() == {"hit_at_5": 1, "hit_at_10": 1, "recall_at_5": 0.5, "recall_at_10": 1}
    assert of_sessions("D1:1").session_values() == dict.fromkeys(result.SESSION_MEASURES, 0)


def test_sessions_of_adversarial_questions_are_left_out_and_changes_are_paired() -> None:
    found, missed, adversarial = of_sessions("D9:3"), of_sessions("D1:1"), of_sessions("D1:1", category=5)
    sessions = result.summary_of([found, missed, adversarial]).sessions
    assert sessions is not None
    assert (sessions.hit_at_5, sessions.recall_at_5) == (0.5, 0.25)
    assert result.summary_of([adversarial]).sessions is None
    change = result.compared([missed, missed, adversarial], [found, missed, adversarial]).sessions
    assert {name: (each.difference, each.wins) for name, each in change.items()} == {
        "hit_at_5": (0.5, 1),
        "hit_at_10": (0.5, 1),
        "recall_at_5": (0.25, 1),
        "recall_at_10": (0.25, 1),
    }


def test_a_comparison_pairs_question_by_question() -> None:
    change = result.compared(answers_of(), answers_of(conv_1=["c"], conv_2=["d"]))
    recall = change.overall["recall_at_5"]
    assert (recall.difference, recall.wins, recall.losses) == (pytest.approx(1 / 3), 1, 0)
    rank = change.overall["mrr"]
    assert (rank.difference, rank.wins) == (pytest.approx((0.75 + 1) / 3), 2)
    assert {category: paired["recall_at_5"].difference for category, paired in change.by_category.items()} == {
        1: 0,
        4: 0.5,
        5: 0,
    }


def test_runs_are_compared_with_the_first_one_and_with_those_of_the_same_name_in_an_earlier_result() -> None:
    nothing, everything = answers_of(conv_1=[], conv_2=[]), answers_of(conv_1=["c"], conv_2=["d"])
    earlier = result_of(run_of(nothing), run_of(everything, "BM25")).files[0]
    first, same, new = result.with_comparisons(
        [run_of(answers_of(), "without keyword"), run_of(nothing, "BM25"), run_of(everything, "cosine")], earlier
    )

    def change(comparison: Comparison | None) -> float | None:
        return None if comparison is None else comparison.overall["recall_at_5"].difference

    assert (change(first.against_default), change(first.against_earlier)) == (None, pytest.approx(1 / 3))
    assert (change(same.against_default), change(same.against_earlier)) == (
        pytest.approx(-1 / 3),
        pytest.approx(-2 / 3),
    )
    assert (change(new.against_default), change(new.against_earlier)) == (pytest.approx(1 / 3), None)


def test_a_result_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    answers = answers_of()
    kept = result_of(*result.with_comparisons([run_of(answers), run_of(answers, "without keyword")], None))
    result.write(kept, tmp_path / "result.json")
    assert result.read(tmp_path / "result.json") == kept


@pytest.mark.parametrize("content", ["", "[]", '{"version": 2}', '{"version": 3}'])
def test_a_file_that_is_no_result_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "result.json").write_text(content)
    with pytest.raises(SettingsError, match=r"result\.json is not a result of this version: "):
        result.read(tmp_path / "result.json")
    with pytest.raises(SettingsError, match="cannot read"):
        result.read(tmp_path / "absent.json")


def test_a_result_is_compared_with_one_of_the_same_questions_about_a_file_of_the_same_content_only() -> None:
    earlier = result_of(run_of(answers_of()))
    assert result.comparable(earlier, "renamed.json", "00", QUESTIONS) == earlier.files[0]
    with pytest.raises(SettingsError, match="is of another file"):
        result.comparable(earlier, "locomo.json", "11", QUESTIONS)
    for others in (QUESTIONS[:3], QUESTIONS[::-1], (*QUESTIONS[:3], Question("conv-2", 2, "Cid", "else?", 5, ("e",)))):
        with pytest.raises(SettingsError, match="answers other questions"):
            result.comparable(earlier, "locomo.json", "00", others)


@pytest.mark.parametrize(
    ("used", "unexpected"),
    [
        (None, False),
        (USED, False),
        (USED.model_copy(update={"channels": None}), True),
        (USED.model_copy(update={"channels": ("semantic",)}), True),
        (USED.model_copy(update={"channels": None, "index": "off"}), False),
    ],
)
def test_a_run_by_words_is_unexpected_if_vectors_were_requested(used: Used | None, unexpected: bool) -> None:
    assert result.unexpectedly_degraded(run_of(answers_of()).model_copy(update={"used": used})) is unexpected


# Facts


CHAT = (
    ("Ann B.", "My sister is a nurse in Turin."),
    ("Bob", "I live in Genoa. Have you seen it?"),
    ("Ann B.", "Not yet."),
    ("Bob", "I have two cats."),
)


def chat(*questions: object) -> dict[str, Any]:
    """A conversation of two sessions with the same words."""
    found = sample(*questions)
    for number in (1, 2):
        found["conversation"][f"session_{number}_date_time"] = f"1:56 pm on {number} May, 2023"
        found["conversation"][f"session_{number}"] = [
            {"speaker": name, "dia_id": f"D{number}:{n}", "text": text} for n, (name, text) in enumerate(CHAT, 1)
        ]
    return found


def events_of(*samples: object) -> list[Event]:
    return [item.event for item in locomo.read(json.dumps(samples).encode()) if item.event is not None]


def test_the_agent_ends_a_turn_after_each_of_its_utterances_and_at_the_end_of_a_session() -> None:
    events = events_of(chat(), chat() | {"sample_id": "conv-2"})
    sessions = list(facts.by_session(events, {"conv-1": "Ann B."}))
    assert [[event.kind for event in session] for session in sessions[:3]] == [
        ["agent.configured"],
        ["space.configured"],
        [
            "session.started",
            *("agent.spoke", "turn.ended", "agent.spoke", "agent.spoke", "turn.ended", "agent.spoke"),
            *("turn.ended", "session.ended"),
        ],
    ]
    added = [event for session in sessions for event in session if event not in events]
    assert {(event.space, event.agent) for event in added} == {("conv-1", "Ann B.")}
    assert len({event.id for event in added}) == len(added) == 7
    assert [event for session in sessions for event in session if event not in added] == events
    assert sessions == list(facts.by_session(events, {"conv-1": "Ann B."}))


@pytest.mark.models("facts")
def test_facts_are_drawn_from_each_session_once_and_name_what_says_them() -> None:
    events, agents = events_of(chat()), {"conv-1": "Ann B."}
    seen: list[tuple[int, int]] = []

    async def scenario() -> tuple[list[int], list[tuple[str, tuple[str, ...]]], list[str]]:
        async with Memory.in_memory() as memory:
            counts = [await facts.draw(memory, events, agents, lambda done, total: seen.append((done, total)))]
            counts.append(await facts.draw(memory, events, agents))
            kept = (await memory.long_term.list("conv-1", "Ann B.")).entries
            others = (await memory.long_term.list("conv-1", "Bob")).entries
            return counts, [(entry.text, entry.sources) for entry in kept[::-1]], [entry.text for entry in others]

    counts, kept, others = asyncio.run(scenario())
    assert counts == [3, 3]
    assert kept == [
        ("Ann B.'s sister is a nurse in Turin.", ("D1:1",)),
        ("Bob lives in Genoa.", ("D1:2",)),
        ("Bob has two cats.", ("D1:4",)),
    ]
    assert others == []
    assert (seen[0], seen[-1]) == ((0, len(events)), (len(events), len(events)))


# Baselines


TURNS = {
    "conv-1": [
        Turn("D1:1", "Ann", "The red boat sank."),
        Turn("D1:2", "Bob", "A boat! A boat, a boat."),
        Turn("D1:3", "Ann", "Hello."),
    ],
    "conv-2": [Turn("D1:1", "Cid", "The red car.")],
}


def test_bm25_ranks_the_turns_of_a_conversation_by_the_terms_of_the_question() -> None:
    ask = baselines.bm25(TURNS)
    # Lengths are 3, 3 and 1 terms, on average 7/3; "boat" is in 2 of 3 turns, "red" in 1.
    floor = 0.9 * (1 - 0.4 + 0.4 * 3 / (7 / 3))
    assert math.log(1 + 1.5 / 2.5) * (3 * 1.9 / (3 + floor) - 1.9 / (1 + floor)) < (
        math.log(1 + 2.5 / 1.5) * 1.9 / (1 + floor)
    )
    assert asyncio.run(ask("conv-1", "Ann", "Is the red boat a boat?")) == [Hit("D1:1"), Hit("D1:2")]
    assert asyncio.run(ask("conv-1", "Ann", "Whose boat?")) == [Hit("D1:2"), Hit("D1:1")]
    assert asyncio.run(ask("conv-2", "Cid", "Whose boat?")) == []


def test_cosine_ranks_all_turns_of_a_conversation_by_their_vectors() -> None:
    seen: list[tuple[int, int]] = []
    embedder = ToyEmbedder()

    async def best(question: str) -> list[Hit]:
        ask = await baselines.cosine(TURNS, embedder, lambda done, total: seen.append((done, total)))
        return list(await ask("conv-1", "Ann", question))

    assert {hit.id for hit in asyncio.run(best("Hello."))} == {turn.id for turn in TURNS["conv-1"]}
    for turn in TURNS["conv-1"]:
        assert asyncio.run(best(f"{turn.author}: {turn.text}"))[0] == Hit(turn.id)
    assert seen[:2] == [(3, 4), (4, 4)]


def test_cosine_leaves_out_what_the_model_cannot_read() -> None:
    async def best(question: str) -> list[Hit]:
        turns = {"conv-1": [Turn("D1:1", "Ann", "你好，很高兴认识你。"), Turn("D1:2", "Bob", "Pleased to meet you.")]}
        ask = await baselines.cosine(turns, registry.embedder("minilm"))
        return list(await ask("conv-1", "Ann", question))

    assert asyncio.run(best("Who is pleased?")) == [Hit("D1:2")]
    assert asyncio.run(best("谁很高兴？")) == []


# The command


def test_help_names_the_channels_that_can_be_left_out() -> None:
    shown = recallog("eval", "locomo", "--help").out
    assert all(channel in shown for channel in DEFAULT_CHANNELS)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps([sample(asking(["D1:1"]), asking(["D1:2"], 4))]))
    return path


def test_a_result_of_other_questions_is_refused_before_anything_is_asked(tmp_path: Path, file: Path) -> None:
    for digest, why in (
        ("00", "is of another file"),
        (hashlib.sha256(file.read_bytes()).hexdigest(), "other questions"),
    ):
        result.write(result_of(run_of(answers_of()), digest=digest), tmp_path / "earlier.json")
        ended = recallog("eval", "locomo", file, "--against", tmp_path / "earlier.json", "--home", tmp_path / "home")
        assert (ended.code, ended.out) == (2, "")
        assert why in ended.err
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--ablations", "--without", "late_interaction"], "--without"),
        (["--ablations", "--index", "off"], "--index off"),
        ([part for name in sorted(DEFAULT_CHANNELS) for part in ("--without", name)], "no channel is left"),
        (["--out", "nowhere/at/all.json"], "does not exist"),
        (["--without", "luck"], "luck"),
        (["--without", "temporal"], "temporal is not a default channel"),
        (["--limit", "0"], "limit"),
        (["elsewhere/locomo.json"], "two files have the same name"),
    ],
)
def test_contradictory_options_are_a_usage_error(file: Path, options: list[str], why: str) -> None:
    ended = recallog("eval", "locomo", file, *options)
    assert (ended.code, ended.out) == (2, "")
    assert why in ended.err


def test_an_unreadable_file_exits_with_2_and_a_file_without_questions_with_1(tmp_path: Path) -> None:
    absent = recallog("eval", "locomo", tmp_path / "absent.json")
    assert (absent.code, "cannot read" in absent.err) == (2, True)
    (tmp_path / "empty.json").write_text(json.dumps([sample()]))
    empty = recallog("eval", "locomo", tmp_path / "empty.json")
    assert (empty.code, "no question of the file has evidence" in empty.err) == (1, True)


def test_a_run_is_reported_saved_and_compared_with_itself(tmp_path: Path, file: Path) -> None:
    kept, home = tmp_path / "result.json", tmp_path / "home"
    first = recallog("eval", "locomo", file, "--index", "off", "--json", "--out", kept, "--home", home)
    assert (first.code, first.err) == (0, "")
    written = result.read(kept)
    (of_file,) = first.json["files"]
    (run,) = of_file["runs"]
    assert (run["name"], run["summary"]["overall"]["questions"]) == ("index off", 2)
    assert len(written.files[0].runs[0].answers) == 2
    answers = {"files": {"__all__": {"runs": {"__all__": {"answers"}}}}}
    assert first.json == written.model_dump(mode="json", exclude=answers)
    again = recallog("eval", "locomo", file, "--index", "off", "--against", kept, "--home", home)
    assert again.code == 0
    assert "1 multi-hop" in again.out
    assert "+0.0 to +0.0" in again.out
    assert re.search(r"sessions, 1 to 4 .*hit@5.*\n.* \+0\.0", again.out)
    assert f"from the same run in {kept}" in again.err


def test_several_files_are_reported_in_one_table_each_with_a_memory_of_its_own(tmp_path: Path, file: Path) -> None:
    other, kept, home = tmp_path / "other.json", tmp_path / "result.json", tmp_path / "home"
    other.write_text(json.dumps([sample(asking(["D1:2"], 4, "Which word is number 1?"))]))
    shown = recallog("eval", "locomo", other, file, "--index", "off", "--home", home, "--out", kept)
    assert shown.code == 0
    runs, *_ = shown.out.split("\n\n")
    assert [line.split()[0] for line in runs.splitlines()[1:]] == ["other.json", "index", "locomo.json", "index"]
    assert max(map(len, shown.out.splitlines())) <= 100
    assert sorted(folder.name for folder in home.iterdir()) == ["locomo", "other"]
    assert [each.file for each in result.read(kept).files] == ["other.json", "locomo.json"]
    # In another order, and only one of them: files are matched by their content.
    renamed = file.rename(tmp_path / "renamed.json")
    again = recallog("eval", "locomo", renamed, "--index", "off", "--against", kept)
    assert (again.code, again.out.count("+0.0 to +0.0")) == (0, 3)


def test_ablations_and_baselines_are_runs_of_their_own(tmp_path: Path, file: Path) -> None:
    shown = recallog("eval", "locomo", file, "--ablations", "--baselines", "--json", "--home", tmp_path / "home")
    assert shown.code == 0, shown.err
    (of_file,) = shown.json["files"]
    assert [run["name"] for run in of_file["runs"]] == [
        "default",
        *(f"{'without' if channel in DEFAULT_CHANNELS else 'with'} {channel}" for channel in RANKED),
        "index off",
        "BM25",
        "cosine",
    ]
    assert all(run["against_default"] for run in of_file["runs"][1:])


@pytest.mark.models("all")
def test_a_run_with_facts_is_reported_beside_the_one_without(tmp_path: Path) -> None:
    file, home, kept = tmp_path / "chat.json", tmp_path / "home", tmp_path / "result.json"
    questions = (asking(["D1:2"], 4, "Where does Bob live?"), asking(["D1:1"], 4, "Has Bob two cats?"))
    file.write_text(json.dumps([chat(*questions)]))
    alone = recallog("eval", "locomo", file, "--index", "off", "--json")
    shown = recallog("eval", "locomo", file, "--index", "off", "--facts", "--home", home, "--out", kept)
    assert shown.code == 0
    assert "chat.json, with facts: 3 facts were drawn" in shown.err
    default, with_facts = result.read(kept).files[0].runs
    assert (default.name, with_facts.name) == ("index off", "with facts")
    (run,) = alone.json["files"][0]["runs"]
    assert default.summary.overall is not None
    assert run["summary"]["overall"] == default.summary.overall.model_dump()
    assert all(not answer.facts for answer in default.answers)
    assert with_facts.used is not None
    assert with_facts.used.facts == 3
    _, answer = with_facts.answers
    ((fact, sources),) = answer.facts.items()
    assert sources == ("D1:1",)  # which is not a hit of its own: both say the same
    assert "D1:1" not in answer.hits
    assert answer.ranks == (answer.hits.index(fact) + 1,)
    # Another run with the same folder draws nothing again.
    again = recallog("eval", "locomo", file, "--index", "off", "--facts", "--home", home, "--against", kept)
    assert "3 facts were drawn" in again.err
    assert again.out.count("+0.0 to +0.0") == 6


def test_questions_are_asked_in_another_conversation_if_there_is_one(tmp_path: Path, file: Path) -> None:
    alone = recallog("eval", "locomo", file, "--index", "off", "--elsewhere")
    assert (alone.code, "needs a file of several conversations" in alone.err) == (1, True)
    two = [sample(asking(["D1:1"], 4, "Which word?")), sample(asking(["D1:2"], 1, "Why Genoa?"), sample_id="conv-2")]
    file.write_text(json.dumps(two))
    kept = tmp_path / "result.json"
    shown = recallog("eval", "locomo", file, "--index", "off", "--elsewhere", "--out", kept)
    assert shown.code == 0
    assert re.search(r"nothing close .*elsewhere .*\nlocomo.json +50\.0 +- +50\.0 +-", shown.out)
    found = result.read(kept).files[0].elsewhere
    assert found == Elsewhere(questions=2, nothing_close=0.5, renamed=0, nothing_close_renamed=None)


# The real questions.


def recorded() -> bytes:
    return real_data.path("locomo-tuning.json").read_bytes()


def test_of_497_real_questions_383_of_categories_1_to_4_have_evidence() -> None:
    questions = locomo_questions.read(recorded())
    counted = Counter(question.category for question in questions.asked)
    assert len(questions.asked) + questions.skipped == 497
    assert sum(count for category, count in counted.items() if category != 5) == 383
    assert (counted[5], questions.skipped, questions.unresolved) == (112, 2, 0)


def test_two_real_questions_with_the_same_text_are_two_questions() -> None:
    questions = locomo_questions.read(recorded()).asked
    assert len({(question.space, question.number) for question in questions}) == len(questions)
    assert len({(question.space, question.text) for question in questions}) == len(questions) - 1


def test_what_a_memory_does_not_know_is_measured_by_halves(tmp_path: Path) -> None:
    known = [{"question": f"Where is the {thing}?", "memory": 0} for thing in ("mill", "river")]
    memories = [{"sort": "fact", "text": "The mill is by the river."}, {"sort": "turn", "text": "It rained."}]
    unknown = ["Who is the harbour master of Genoa?", "Which mill burned in Genoa, harbour master?"]
    file = tmp_path / "questions.json"
    language = {"language": "en", "memories": memories, "answerable": known, "unanswerable": unknown}
    file.write_text(json.dumps([language]))
    rows = recallog("eval", "weak", file, "--run", "words only", "--json").json["rows"]
    assert [(row["language"], row["half"]) for row in rows] == [
        (language, half) for language in ("en", "all") for half in ("tuning", "held out")
    ]
    assert [(row["answerable"], row["unanswerable"]) for row in rows] == [(1, 1)] * 4
    assert [(row["recall"], row["false_alarms"], row["lost"]) for row in rows[:1]] == [(1.0, 0.0, 0.0)]
    shown = recallog("eval", "weak", file, "--run", "words only")
    assert re.search(r"words only +all +held out", shown.out)
    file.write_text("{}]")
    assert recallog("eval", "weak", file, "--run", "words only").code == 1
