"""Results of an evaluation: every question with its hits, the figures, and the comparison with an earlier result.

A result file is a `Result` as JSON. It contains the runs of one or more files of questions. The runs of a file can be
compared with those of an earlier result that answer the same questions about a file of the same content.
"""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import Field, ValidationError

from recallog import SettingsError
from recallog.retrieval.channels import LATE_INTERACTION, SEMANTIC
from recallog.views import View
from recallog_eval import metrics
from recallog_eval.locomo_questions import ADVERSARIAL, Misplaced, Question
from recallog_eval.metrics import HITS, Paired
from recallog_schemas import limits


class Hit(NamedTuple):
    """A recalled event, or a recalled fact."""

    id: str
    weak: bool = False
    sources: tuple[str, ...] = ()
    """For a fact: the ids of the events from which it was extracted. It counts as these events."""


Ask = Callable[[str, str, str], Awaitable[Sequence[Hit]]]
"""Takes (space, agent, question) and returns what is recalled, best first."""

OFF = "off"
EMBEDDED = "embedded"
MEASURES = ("recall_at_5", "recall_at_10", "recall_at_20", "mrr")
SESSION_MEASURES = ("hit_at_5", "hit_at_10", "recall_at_5", "recall_at_10")


class Used(View):
    """The configuration of a run."""

    recallog: str
    """The version of Recallog."""
    index: str
    """The value of `RECALLOG_INDEX`: `embedded`, `off` or a URL."""
    channels: tuple[str, ...] | None
    """The channels that rank; None for the default ones."""
    top_k: int = HITS
    facts: int | None = None
    """The number of facts that were drawn from the conversations; None if facts are not drawn."""


class Answered(View):
    """One question and its hits."""

    space: str
    number: int
    """Ordinal of the question in its conversation, from 1."""
    question: str
    category: int
    evidence: tuple[str, ...]
    hits: tuple[str, ...]
    """Best first."""
    weak: tuple[bool, ...]
    """Whether each of the hits is weak."""
    facts: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """The hits that are facts, with the ids of the events that each counts as."""
    ranks: tuple[int, ...]
    """The ranks of the evidence among the hits, from 1. If several hits show a turn, the first of them counts."""
    seconds: float
    """Duration of the query."""

    def values(self) -> dict[str, float]:
        """The value of each of `MEASURES`, 0 to 1."""
        return {
            "recall_at_5": metrics.recall_at(5, self.ranks, len(self.evidence)),
            "recall_at_10": metrics.recall_at(10, self.ranks, len(self.evidence)),
            "recall_at_20": metrics.recall_at(20, self.ranks, len(self.evidence)),
            "mrr": metrics.reciprocal_rank(self.ranks),
        }

    def session_values(self) -> dict[str, float]:
        """The value of each of `SESSION_MEASURES`, 0 to 1."""
        hits = [self.facts.get(hit, (hit,)) for hit in self.hits]
        ranks = metrics.session_ranks(hits, self.evidence)
        sessions = len({metrics.session_of(id_) for id_ in self.evidence})
        return {
            "hit_at_5": float(any(rank <= 5 for rank in ranks)),
            "hit_at_10": float(any(rank <= 10 for rank in ranks)),
            "recall_at_5": metrics.recall_at(5, ranks, sessions),
            "recall_at_10": metrics.recall_at(10, ranks, sessions),
        }

    @property
    def nothing_close(self) -> bool:
        """Whether an answer of the default size has only weak hits."""
        return all(self.weak[: limits.RECALL_HITS])

    def key(self) -> tuple[object, ...]:
        """Identifies the question when two results are compared."""
        return (self.space, self.number, self.question, self.category, self.evidence)


class Figures(View):
    """Means over questions, 0 to 1."""

    questions: int
    recall_at_5: float
    recall_at_10: float
    recall_at_20: float
    mrr: float

    @classmethod
    def of(cls, answers: Sequence[Answered]) -> "Figures | None":
        """The means over the answers; None if there are none."""
        if not answers:
            return None
        values = [answer.values() for answer in answers]
        means = {name: sum(value[name] for value in values) / len(values) for name in MEASURES}
        return cls(questions=len(answers), **means)


class SessionFigures(View):
    """Means over questions, 0 to 1, where a session counts as one item. Sessions are ranked by their first hit."""

    hit_at_5: float
    """The share of the questions with a session of the evidence among the first 5."""
    hit_at_10: float
    recall_at_5: float
    """The share of the sessions of the evidence that are among the first 5."""
    recall_at_10: float

    @classmethod
    def of(cls, answers: Sequence[Answered]) -> "SessionFigures | None":
        """The means over the answers; None if there are none."""
        if not answers:
            return None
        values = [answer.session_values() for answer in answers]
        return cls(**{name: sum(value[name] for value in values) / len(values) for name in SESSION_MEASURES})


class WeakHits(View):
    """The costs and benefits of marking weak hits. Shares are from 0 to 1; None if there is nothing to divide by."""

    evidence_at_5: float | None
    """The share of the evidence among the first 5 hits of categories 1 to 4 that is weak, and therefore lost."""
    evidence_at_10: float | None
    evidence_at_20: float | None
    nothing_close: float | None
    """The share of the questions of categories 1 to 4 whose first 5 hits are all weak."""
    nothing_close_adversarial: float | None
    """The same for category 5."""


class Elsewhere(View):
    """Questions of categories 1 to 4, each asked in another conversation, which cannot answer it."""

    questions: int
    nothing_close: float
    """The share of these questions whose first 5 hits are all weak."""
    renamed: int
    """The number of these questions that name a speaker. They were asked again with the name of a speaker of the other
    conversation."""
    nothing_close_renamed: float | None
    """The share of these whose first 5 hits are all weak; None if there are none."""


class Summary(View):
    """The figures of a run."""

    overall: Figures | None
    """The figures of categories 1 to 4."""
    adversarial: Figures | None
    """The figures of category 5."""
    by_category: dict[int, Figures]
    """The figures of each category that was asked, 1 to 4."""
    sessions: SessionFigures | None = None
    """The figures of sessions, of categories 1 to 4."""
    weak: WeakHits
    latency_ms_p50: float
    latency_ms_p95: float
    degraded: int = 0
    """The number of answers that used only keywords."""
    degraded_because: str | None = None
    """The reason of the first of these answers."""


class Comparison(View):
    """The change of each of `MEASURES` from an earlier result to this one."""

    overall: dict[str, Paired]
    """Of categories 1 to 4; empty if none of them was asked."""
    by_category: dict[int, dict[str, Paired]]
    """Of each category that was asked, including 5."""
    sessions: dict[str, Paired] = Field(default_factory=dict)
    """The change of each of `SESSION_MEASURES`, of categories 1 to 4."""


class Run(View):
    """The answers to all questions of a file in one configuration, or by one baseline."""

    name: str
    """`default`, `without keyword`, `index off`, `BM25`, ... Unique within a file."""
    used: Used | None
    """None for a baseline, which ranks without Recallog."""
    summary: Summary
    against_default: Comparison | None = None
    """The change from the first run of the file to this one; None for the first run itself."""
    against_earlier: Comparison | None = None
    """The change from the run of an earlier result to this one; None if there is none."""
    answers: tuple[Answered, ...]


class FileResult(View):
    """All runs about one file of questions."""

    file: str
    file_sha256: str
    skipped: int
    """The number of questions that were not asked, because no turn is their evidence."""
    unresolved: int
    """The number of evidence ids that are not turns."""
    elsewhere: Elsewhere | None = None
    """By the first run; None if no question was asked in another conversation."""
    runs: tuple[Run, ...]
    """The runs, at least one. The first is the requested run. The others are the run with facts, the ablations and the
    baselines."""

    def run(self, name: str) -> Run | None:
        """The run with this name; None if there is none."""
        return next((run for run in self.runs if run.name == name), None)


class Result(View):
    """The content of a result file."""

    version: Literal[3] = 3
    files: tuple[FileResult, ...]

    def file(self, sha256: str) -> FileResult | None:
        """The runs about the file with this content; None if there are none."""
        return next((file for file in self.files if file.file_sha256 == sha256), None)


def unexpectedly_degraded(run: Run) -> bool:
    """Whether answers used only keywords although an index and channels with vectors were requested."""
    if run.used is None or run.used.index == OFF or not run.summary.degraded:
        return False
    return run.used.channels is None or not {SEMANTIC, LATE_INTERACTION}.isdisjoint(run.used.channels)


async def answers_of(
    questions: Sequence[Question], ask: Ask, progress: Callable[[int, int], None] | None = None
) -> tuple[Answered, ...]:
    """Ask all questions in sequence, and measure each. `progress` is called with (asked, total)."""
    answers = []
    for done, question in enumerate(questions, 1):
        began = time.perf_counter()
        hits = await ask(question.space, question.asker, question.text)
        seconds = time.perf_counter() - began
        answers.append(
            Answered(
                space=question.space,
                number=question.number,
                question=question.text,
                category=question.category,
                evidence=question.evidence,
                hits=tuple(hit.id for hit in hits[:HITS]),
                weak=tuple(hit.weak for hit in hits[:HITS]),
                facts={hit.id: hit.sources for hit in hits[:HITS] if hit.sources},
                ranks=metrics.ranks_of([hit.sources or (hit.id,) for hit in hits], question.evidence),
                seconds=seconds,
            )
        )
        if progress is not None:
            progress(done, len(questions))
    return tuple(answers)


async def elsewhere_of(
    questions: Sequence[Misplaced], ask: Ask, progress: Callable[[int, int], None] | None = None
) -> Elsewhere | None:
    """Ask each question in its other conversation; None if there are none. `progress` is called as in `answers_of`."""
    if not questions:
        return None
    asked, renamed = [], []
    for done, question in enumerate(questions, 1):
        asked.append(await _nothing_close(ask, question, question.text))
        if question.renamed is not None:
            renamed.append(await _nothing_close(ask, question, question.renamed))
        if progress is not None:
            progress(done, len(questions))
    return Elsewhere(
        questions=len(asked),
        nothing_close=sum(asked) / len(asked),
        renamed=len(renamed),
        nothing_close_renamed=_share(renamed),
    )


async def _nothing_close(ask: Ask, question: Misplaced, text: str) -> bool:
    hits = await ask(question.space, question.asker, text)
    return all(hit.weak for hit in hits[: limits.RECALL_HITS])


def summary_of(answers: Sequence[Answered], degraded: Sequence[str] = ()) -> Summary:
    """The figures of at least one answer. `degraded` has the reason of each answer that used keywords only."""
    milliseconds = [answer.seconds * 1e3 for answer in answers]
    by_category = {category: Figures.of(group) for category, group in _groups(answers) if category != ADVERSARIAL}
    answerable = [answer for answer in answers if answer.category != ADVERSARIAL]
    return Summary(
        overall=Figures.of(answerable),
        sessions=SessionFigures.of(answerable),
        adversarial=Figures.of([answer for answer in answers if answer.category == ADVERSARIAL]),
        by_category={category: figures for category, figures in by_category.items() if figures is not None},
        weak=_weak_hits(answers),
        latency_ms_p50=metrics.percentile(milliseconds, 50),
        latency_ms_p95=metrics.percentile(milliseconds, 95),
        degraded=len(degraded),
        degraded_because=degraded[0] if degraded else None,
    )


def compared(before: Sequence[Answered], after: Sequence[Answered]) -> Comparison:
    """The change from `before` to `after`, which answer the same questions in the same order."""
    judged = [pair for pair in zip(before, after, strict=True) if pair[1].category != ADVERSARIAL]
    was, now = [one for one, _ in judged], [one for _, one in judged]
    return Comparison(
        overall=_changes(was, now),
        sessions=_paired([one.session_values() for one in was], [one.session_values() for one in now]),
        by_category={
            category: _changes([answer for answer in before if answer.category == category], group)
            for category, group in _groups(after)
        },
    )


def comparable(earlier: Result, file: str, file_sha256: str, questions: Sequence[Question]) -> FileResult:
    """The runs of `earlier` that answer exactly these questions about exactly this file.

    Raises `SettingsError` if there are none. `file` is the name of the file for the message.
    """
    found = earlier.file(file_sha256)
    if found is None:
        others = ", ".join(f"{each.file} (sha256 {each.file_sha256[:12]})" for each in earlier.files)
        raise SettingsError(
            f"the earlier result is of another file: {others}, not {file} (sha256 {file_sha256[:12]}). Evaluate the "
            "same file, or create that result again with --out"
        )
    asked = [(one.space, one.number, one.text, one.category, one.evidence) for one in questions]
    answered = [answer.key() for answer in found.runs[0].answers]
    if answered != asked:
        raise SettingsError(
            f"the earlier result answers other questions about {file} ({len(answered):,} of them, not these "
            f"{len(asked):,}). Run with the same --limit, or create that result again with --out"
        )
    return found


def with_comparisons(runs: Sequence[Run], earlier: FileResult | None) -> tuple[Run, ...]:
    """The runs, each compared with the first one, and with the run of `earlier` that has its name.

    The first run is compared with the first run of `earlier`, even if their configurations differ.
    """
    first, *others = runs
    before = earlier.runs[0] if earlier is not None else None
    found = [first.model_copy(update={"against_earlier": before and compared(before.answers, first.answers)})]
    for run in others:
        before = earlier.run(run.name) if earlier is not None else None
        changes = {
            "against_default": compared(first.answers, run.answers),
            "against_earlier": before and compared(before.answers, run.answers),
        }
        found.append(run.model_copy(update=changes))
    return tuple(found)


def read(path: Path) -> Result:
    """Read a result file. Raises `SettingsError` if it cannot be read or is not a result."""
    try:
        return Result.model_validate_json(path.read_bytes())
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}") from None
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise SettingsError(f"{path} is not a result of this version: {field or 'JSON'}: {first['msg']}") from None


def write(result: Result, path: Path) -> None:
    """Write a result file. Raises `OSError`."""
    path.write_text(result.model_dump_json() + "\n", encoding="utf-8")


def _weak_hits(answers: Sequence[Answered]) -> WeakHits:
    answerable = [answer for answer in answers if answer.category != ADVERSARIAL]
    adversarial = [answer for answer in answers if answer.category == ADVERSARIAL]
    evidence = [(rank, answer.weak[rank - 1]) for answer in answerable for rank in answer.ranks]
    lost = {k: _share([weak for rank, weak in evidence if rank <= k]) for k in (5, 10, 20)}
    return WeakHits(
        evidence_at_5=lost[5],
        evidence_at_10=lost[10],
        evidence_at_20=lost[20],
        nothing_close=_share([answer.nothing_close for answer in answerable]),
        nothing_close_adversarial=_share([answer.nothing_close for answer in adversarial]),
    )


def _share(values: Sequence[bool]) -> float | None:
    """The fraction that is true; None for an empty sequence."""
    return sum(values) / len(values) if values else None


def _groups(answers: Sequence[Answered]) -> list[tuple[int, list[Answered]]]:
    categories = sorted({answer.category for answer in answers})
    return [(category, [answer for answer in answers if answer.category == category]) for category in categories]


def _changes(before: Sequence[Answered], after: Sequence[Answered]) -> dict[str, Paired]:
    return _paired([answer.values() for answer in before], [answer.values() for answer in after])


def _paired(before: Sequence[Mapping[str, float]], after: Sequence[Mapping[str, float]]) -> dict[str, Paired]:
    """The change of each measure; empty without answers."""
    if not after:
        return {}
    return {name: metrics.paired([was[name] for was in before], [now[name] for now in after]) for name in after[0]}
