"""`eval`: measures recall on public data sets of questions with known answers."""

import hashlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from recallog import Memory, Settings
from recallog.retrieval.channels import DEFAULT_CHANNELS, LATE_INTERACTION, SEMANTIC, Channel
from recallog_schemas.errors import InvalidEvent
from recallog_schemas.views import View
from recallog_service.cli import console, terminal
from recallog_service.cli.terminal import Json
from recallog_service.evaluation import locomo_questions, result
from recallog_service.evaluation.locomo_questions import ADVERSARIAL, CATEGORIES, Misplaced, Question
from recallog_service.evaluation.metrics import HITS, Paired
from recallog_service.evaluation.result import (
    MEASURES,
    Ablation,
    Answered,
    Comparison,
    Elsewhere,
    Figures,
    Hit,
    Result,
    Summary,
    Used,
)
from recallog_service.formats import locomo
from recallog_service.ingest import ingest

_group = typer.Typer(help="Measure recall on questions with known answers.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(_group, name="eval")


OFF = "off"
EMBEDDED = "embedded"
_BATCH_EVENTS = 500
_HEADINGS = ("R@5", "R@10", "R@20", "MRR")
_CHANNELS: tuple[Channel, ...] = get_args(Channel)
_DEFAULT_CHANNELS = tuple(channel for channel in _CHANNELS if channel in DEFAULT_CHANNELS)


class Report(View):
    """The JSON output of the command: a result without the single answers, which `--out` writes."""

    file: str
    file_sha256: str
    used: Used
    skipped: int
    unresolved: int
    summary: Summary
    elsewhere: Elsewhere | None
    against: Comparison | None
    ablations: tuple[Ablation, ...]


@dataclass(slots=True)
class _Asker:
    """Queries the memory, and collects the reasons of answers that used keywords only."""

    memory: Memory
    channels: Sequence[Channel] | None = None
    """None for the default channels."""
    degraded: list[str] = field(default_factory=list)

    async def ask(self, space: str, agent: str, question: str) -> list[Hit]:
        view = await self.memory.recall(space, agent, question, top_k=HITS, channels=self.channels)
        if view.degraded is not None:
            self.degraded.append(view.degraded)
        return [Hit(hit.event.id, hit.weak) for hit in view.hits]


@_group.command(
    "locomo", epilog="Example: recallog eval locomo locomo10.json --out today.json --against yesterday.json"
)
def locomo_command(
    file: Annotated[Path, typer.Argument(help="File of LoCoMo conversations with questions.")],
    home: Annotated[
        Path | None,
        typer.Option(
            "--home",
            help="Folder of the memory, reused by the next run.",
            show_default="a temporary folder",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File for all answers and figures.")] = None,
    against: Annotated[
        Path | None, typer.Option(help="File of an earlier --out, compared question by question.")
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(metavar="|".join(_DEFAULT_CHANNELS), help="Leave out this default channel; repeatable."),
    ] = None,
    ablations: Annotated[
        bool, typer.Option("--ablations", help="Also run with one channel fewer or more, and without the index.")
    ] = False,
    elsewhere: Annotated[
        bool,
        typer.Option(
            "--elsewhere",
            help="Also ask each question in another conversation, where nothing is close: how often is that said?",
        ),
    ] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Number of questions, spread evenly over the file.")] = None,
    index: Annotated[
        str | None,
        typer.Option(help="embedded, off, or the URL of a Qdrant server.", show_default="RECALLOG_INDEX"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure how much of the evidence of LoCoMo's questions is recalled.

    The file is ingested as by `recallog ingest --format locomo` into a separate
    memory. One of the two speakers asks each question by `recall`. The report has
    the mean fraction of the evidence (ids of turns) among the first 5, 10 and 20
    hits, the mean reciprocal rank of the first one, the share of the evidence that
    is marked as weak, and the latency of a query without indexing. The exit code is
    1 if answers used keywords only although an index was requested.
    """
    channels = _default_channels_without(without) if without else None
    if ablations and (without or index == OFF):
        raise typer.BadParameter("--ablations cannot be combined with --without or --index off")
    text = _bytes(file)
    if out is not None and not out.absolute().parent.is_dir():
        raise typer.BadParameter(f"the folder {out.absolute().parent} does not exist", param_hint="--out")

    async def work() -> tuple[Result, Comparison | None]:
        questions = locomo_questions.read(text)
        asked = _spread(questions.asked, limit)
        misplaced = locomo_questions.misplaced(asked, questions.speakers) if elsewhere else ()
        if elsewhere and not misplaced:
            raise InvalidEvent("--elsewhere needs a file of several conversations")
        digest = hashlib.sha256(text).hexdigest()
        earlier = result.read(against) if against is not None else None
        if earlier is not None:
            result.check_comparable(earlier, digest, asked)
        with _folder(home) as folder:
            await _ingest(text, folder)
            used, answers, summary, found, runs = await _all_runs(
                asked, misplaced, folder, index, channels, ablations
            )  # fmt: skip
        done = Result(
            file=file.name, file_sha256=digest, used=used, skipped=questions.skipped, unresolved=questions.unresolved,
            summary=summary, elsewhere=found, answers=answers, ablations=runs,
        )  # fmt: skip
        if out is not None:
            result.write(done, out)
        return done, result.compared(earlier.answers, answers) if earlier is not None else None

    done, change = terminal.run(work, as_json=as_json)
    if as_json:
        shared = {name: getattr(done, name) for name in Report.model_fields if name != "against"}
        terminal.print_json(Report(**shared, against=change))
    else:
        _print(done, change, against)
    raise typer.Exit(1 if _unexpectedly_degraded(done.used, done.summary) else 0)


def _default_channels_without(names: Sequence[str]) -> tuple[Channel, ...]:
    if unused := set(names).difference(_DEFAULT_CHANNELS):
        raise typer.BadParameter(f"{', '.join(sorted(unused))} is not a default channel", param_hint="--without")
    channels = tuple(channel for channel in _DEFAULT_CHANNELS if channel not in names)
    if not channels:
        raise typer.BadParameter("no channel is left", param_hint="--without")
    return channels


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise typer.BadParameter(f"cannot read {file}: {error.strerror}", param_hint="FILE") from None


def _spread(questions: Sequence[Question], limit: int | None) -> tuple[Question, ...]:
    """At most `limit` questions, spread evenly, so that a small run covers all conversations and categories."""
    if not questions:
        raise InvalidEvent("no question of the file has evidence that is a turn")
    count = len(questions) if limit is None else min(limit, len(questions))
    return tuple(questions[index * len(questions) // count] for index in range(count))


@contextmanager
def _folder(home: Path | None) -> Iterator[Path]:
    if home is not None:
        yield home
        return
    # The index service may write to the folder for a moment after the memory is closed.
    with tempfile.TemporaryDirectory(prefix="recallog-eval-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def _settings(folder: Path, index: str | None) -> Settings:
    """The settings of a folder, even if the environment names a cluster."""
    given: dict[str, Any] = {"home": folder, "ledger": None, "views": None, "index_idle_seconds": None}
    if index is not None:
        given["index"] = index
    return Settings(**given)


async def _ingest(text: bytes, folder: Path) -> None:
    with terminal.bar("ingesting") as advance, terminal.bar("building views") as built:
        async with Memory.open(_settings(folder, OFF), progress=built) as memory:
            done = await ingest(
                memory, locomo.read(text), unit="conversation", batch=_BATCH_EVENTS, progress=advance
            )  # fmt: skip
            if done.problems:
                raise InvalidEvent(f"{done.problems[0].message}. Use another --home, or leave it out")
            await memory.catch_up()


async def _all_runs(
    questions: Sequence[Question],
    misplaced: Sequence[Misplaced],
    folder: Path,
    index: str | None,
    channels: tuple[Channel, ...] | None,
    ablations: bool,
) -> tuple[Used, tuple[Answered, ...], Summary, Elsewhere | None, tuple[Ablation, ...]]:
    """The requested run, which also asks the `misplaced` questions; with `ablations` those with one channel fewer or
    more and without the index."""
    runs = []
    with terminal.bar("building views") as advance:
        settings = _settings(folder, index)
        async with Memory.open(settings, progress=advance) as memory:
            used = _used(settings, channels)
            asker = _Asker(memory, channels)
            answers, summary = await _run(asker, questions, "asking")
            with terminal.bar("asking elsewhere", "questions") as asked:
                elsewhere = await result.elsewhere_of(misplaced, asker.ask, asked)
            for channel in _CHANNELS if ablations else ():
                name = f"{'without' if channel in DEFAULT_CHANNELS else 'with'} {channel}"
                changed = tuple(each for each in _CHANNELS if (each in DEFAULT_CHANNELS) != (each == channel))
                found, figures = await _run(_Asker(memory, changed), questions, name)
                runs.append(_ablation(name, _used(settings, changed), figures, answers, found))
        if ablations:
            settings = _settings(folder, OFF)
            async with Memory.open(settings, progress=advance) as memory:
                found, figures = await _run(_Asker(memory), questions, "index off")
                runs.append(_ablation("index off", _used(settings, None), figures, answers, found))
    return used, answers, summary, elsewhere, tuple(runs)


async def _run(asker: _Asker, questions: Sequence[Question], label: str) -> tuple[tuple[Answered, ...], Summary]:
    with terminal.bar("indexing") as advance:
        await asker.memory.catch_up_index(advance)
    first = {question.space: question for question in reversed(questions)}
    for question in first.values():  # not measured: the first query loads the models
        await asker.ask(question.space, question.asker, question.text)
    asker.degraded.clear()
    with terminal.bar(label, "questions") as advance:
        answers = await result.answers_of(questions, asker.ask, advance)
    return answers, result.summary_of(answers, asker.degraded)


def _used(settings: Settings, channels: tuple[Channel, ...] | None) -> Used:
    return Used(recallog=version("recallog"), index=settings.index or EMBEDDED, channels=channels)


def _ablation(
    name: str, used: Used, summary: Summary, before: Sequence[Answered], after: Sequence[Answered]
) -> Ablation:
    return Ablation(name=name, used=used, summary=summary, against_default=result.compared(before, after))


def _unexpectedly_degraded(used: Used, summary: Summary) -> bool:
    """Whether answers used keywords only although an index and channels with vectors were requested."""
    vectors = used.channels is None or not {SEMANTIC, LATE_INTERACTION}.isdisjoint(used.channels)
    return summary.degraded > 0 and vectors and used.index != OFF


# Output as text


def _print(done: Result, change: Comparison | None, against: Path | None) -> None:
    summary = done.summary
    rows: list[tuple[str, Figures | None]] = []
    rows += [(f"{category} {CATEGORIES[category]}", figures) for category, figures in summary.by_category.items()]
    rows += [("1 to 4", summary.overall), (f"{ADVERSARIAL} {CATEGORIES[ADVERSARIAL]}", summary.adversarial)]
    console.print_table(
        ("category", "questions", *_HEADINGS),
        [(name, f"{figures.questions:,}", *_cells(figures)) for name, figures in rows if figures is not None],
    )
    _print_weak(summary, done.elsewhere)
    console.out.print(
        f"\nlatency of a query: {summary.latency_ms_p50:,.1f} ms (p50), {summary.latency_ms_p95:,.1f} ms (p95)"
    )
    if done.skipped or done.unresolved:
        terminal.note(
            f"{done.skipped:,} questions without evidence among the turns were skipped; {done.unresolved:,} evidence "
            "ids are not turns"
        )
    if change is not None:
        _print_change(change, f"against {against}")
    if done.ablations:
        _print_ablations(done)
    if change is not None or done.ablations:
        terminal.note("* the 95 % interval of the change excludes 0 (paired bootstrap); R@k in percentage points")
    if summary.degraded:
        style = "red" if _unexpectedly_degraded(done.used, summary) else "dim"
        console.err.print(
            f"{summary.degraded:,} of {len(done.answers):,} answers used keywords only: {summary.degraded_because}",
            style=style, markup=False,
        )  # fmt: skip


def _print_weak(summary: Summary, elsewhere: Elsewhere | None) -> None:
    weak = summary.weak
    console.out.print()
    console.print_table(
        ("weak evidence lost", *_HEADINGS[:3]),
        [("1 to 4", *map(_percent, (weak.evidence_at_5, weak.evidence_at_10, weak.evidence_at_20)))],
    )
    asked: list[tuple[str, int, float | None]] = []
    if summary.overall is not None:
        asked.append(("1 to 4", summary.overall.questions, weak.nothing_close))
    if summary.adversarial is not None:
        name = f"{ADVERSARIAL} {CATEGORIES[ADVERSARIAL]}"
        asked.append((name, summary.adversarial.questions, weak.nothing_close_adversarial))
    if elsewhere is not None:
        asked.append(("1 to 4, asked in another conversation", elsewhere.questions, elsewhere.nothing_close))
        asked.append(("the same with its speakers' names", elsewhere.renamed, elsewhere.nothing_close_renamed))
    console.out.print()
    console.print_table(
        ("nothing close", "questions", "said"), [(name, f"{count:,}", _percent(share)) for name, count, share in asked]
    )


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def _print_change(change: Comparison, title: str) -> None:
    console.out.print()
    console.print_table(
        (f"1 to 4, {title}", "change", "95 % interval", "better", "worse"),
        [
            (heading, _points(paired, name), _interval(paired, name), f"{paired.wins:,}", f"{paired.losses:,}")
            for name, heading in zip(MEASURES, _HEADINGS, strict=True)
            if (paired := change.overall.get(name)) is not None
        ],
    )
    console.out.print()
    console.print_table(
        ("category", *_HEADINGS),
        [
            (f"{category} {CATEGORIES[category]}", *(_points(paired[name], name) for name in MEASURES))
            for category, paired in change.by_category.items()
        ],
    )


def _print_ablations(done: Result) -> None:
    rows: list[tuple[str, Summary, Mapping[str, Paired]]] = [("default", done.summary, {})]
    rows += [(ablation.name, ablation.summary, ablation.against_default.overall) for ablation in done.ablations]
    console.out.print()
    console.print_table(
        ("categories 1 to 4", *_HEADINGS, "p50 ms", "change of R@5", "R@10", "R@20", "MRR"),
        [
            (
                name,
                *_cells(summary.overall),
                f"{summary.latency_ms_p50:,.1f}",
                *(_points(change[name], name) if name in change else "" for name in MEASURES),
            )
            for name, summary, change in rows
        ],
    )


def _cells(figures: Figures | None) -> tuple[str, ...]:
    """Recall in percent, MRR as a fraction."""
    if figures is None:
        return ("-",) * len(MEASURES)
    return (
        f"{figures.recall_at_5:.1%}", f"{figures.recall_at_10:.1%}", f"{figures.recall_at_20:.1%}", f"{figures.mrr:.3f}"
    )  # fmt: skip


def _points(paired: Paired, measure: str) -> str:
    return _signed(paired.difference, measure) + ("*" if paired.significant else "")


def _interval(paired: Paired, measure: str) -> str:
    return f"{_signed(paired.low, measure)} to {_signed(paired.high, measure)}"


def _signed(value: float, measure: str) -> str:
    """Recall in percentage points, MRR as a fraction."""
    return f"{value:+.3f}" if measure == "mrr" else f"{value * 100:+.1f}"
