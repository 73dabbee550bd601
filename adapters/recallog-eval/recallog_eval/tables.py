"""The result of `eval` as text: all files and runs; and for the first run its categories, sessions, and weak hits.

The tables fit a terminal of 100 columns.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from recallog_eval import answerable, coverage, result
from recallog_eval.coverage import Coverage, CoverageFile, CoverageResult
from recallog_eval.locomo_questions import ADVERSARIAL, CATEGORIES
from recallog_eval.metrics import Paired
from recallog_eval.result import MEASURES, SESSION_MEASURES, Figures, FileResult, Result, Run
from recallog_service.cli import console, terminal

_HEADINGS = ("R@5", "R@10", "R@20", "MRR")


def print_result(done: Result, against: Path | None) -> None:
    """Print all figures. `against` is the file of the earlier result, None if there is none."""
    console.print_table(
        ("categories 1 to 4", *_HEADINGS, "p50 ms"),
        [row for file in done.files for row in _rows_of_runs(file, against)],
    )
    terminal.print_lines("")
    console.print_table(
        (f"{done.files[0].runs[0].name}, by category", "questions", *_HEADINGS),
        [row for file in done.files for row in _rows_of_categories(file)],
    )
    terminal.print_lines("")
    console.print_table(
        ("sessions, 1 to 4", "hit@5", "hit@10", *_HEADINGS[:2]),
        [_row_of_sessions(file, against) for file in done.files],
    )
    terminal.print_lines("")
    console.print_table(("weak evidence lost", *_HEADINGS[:3]), [_row_of_weak_evidence(file) for file in done.files])
    terminal.print_lines("")
    console.print_table(
        ("nothing close", "1 to 4", "5", "1 to 4 elsewhere", "with its names"),
        [_row_of_nothing_close(file) for file in done.files],
    )
    for file in done.files:
        _print_notes(file)
    if any(_change(run, against) for file in done.files for run in file.runs):
        before = "from the default run" if against is None else f"from the same run in {against}"
        terminal.note(
            f"R@k and shares in per cent; changes {before}, below them their 95 % intervals (paired bootstrap); "
            "* excludes 0"
        )


def print_weak(rows: Sequence[answerable.Row]) -> None:
    """Print the figures of "nothing close"."""
    console.print_table(
        ("run", "language", "questions", "answered", "others", "precision", "recall", "false alarms", "lost"),
        [
            (
                *(row.run, row.language, row.half, f"{row.answerable:8,}", f"{row.unanswerable:6,}"),
                *map(_percent, (row.precision, row.recall, row.false_alarms, row.lost)),
            )
            for row in rows
        ],
    )
    terminal.note('of "nothing close", in per cent; lost: answers that are marked as weak')


def print_coverage(done: CoverageResult, against: Path | None) -> None:
    """Print how much of the evidence the views show. `against` is the file of the earlier result, None if there is
    none."""
    for place, moment in enumerate(coverage.MOMENTS):
        if place:
            terminal.print_lines("")
        columns = ("tokens", "any", "newest", "change", "all", "newest", "change")
        rows = [row for file in done.files for row in _rows_of_coverage(file, moment, against)]
        console.print_table((f"asked {moment}", *columns), rows)
    before = "from the newest turns" if against is None else f"from the same view in {against}"
    terminal.note(
        "per cent of the questions of which the view, or as many tokens of the newest turns, show any turn, and all "
        f"turns, of the evidence; changes {before}, with 95 % intervals (paired bootstrap); * excludes 0"
    )


def _rows_of_coverage(file: CoverageFile, moment: str, against: Path | None) -> Iterator[tuple[str, ...]]:
    yield (file.file,)
    for view in file.views:
        if view.moment == moment:
            yield (f"  {view.view}", f"{view.tokens:6,.0f}", *_cells_of_coverage(view, against))


def _cells_of_coverage(view: Coverage, against: Path | None) -> Iterator[str]:
    change = view.change if against is None else view.against_earlier
    for name in coverage.MEASURES:
        yield from map(_percent, (view.shares[name], view.newest[name]))
        yield f"{_points(change[name], name)} [{_interval(change[name], name)}]" if change else "-"


def _rows_of_runs(file: FileResult, against: Path | None) -> Iterator[tuple[str, ...]]:
    """The file's name, then two lines for each run: figures with their changes, and the intervals of the changes."""
    yield (file.file,)
    for run in file.runs:
        change = _change(run, against)
        latency = "" if run.used is None else f"{run.summary.latency_ms_p50:6.1f}"
        yield (f"  {run.name}", *_cells(run.summary.overall, change), latency)
        if change:
            yield ("", *(_interval(change[name], name) for name in MEASURES))


def _rows_of_categories(file: FileResult) -> Iterator[tuple[str, ...]]:
    summary, change = file.runs[0].summary, file.runs[0].against_earlier
    figures = dict(summary.by_category)
    if summary.adversarial is not None:
        figures[ADVERSARIAL] = summary.adversarial
    yield (file.file,)
    for category, of_category in figures.items():
        changed = None if change is None else change.by_category[category]
        yield (f"  {category} {CATEGORIES[category]}", f"{of_category.questions:9,}", *_cells(of_category, changed))


def _row_of_sessions(file: FileResult, against: Path | None) -> tuple[str, ...]:
    """The sessions of the first run, with its changes if an earlier result is given."""
    run = file.runs[0]
    figures = run.summary.sessions
    change = None if against is None or run.against_earlier is None else run.against_earlier.sessions
    if figures is None:
        return (file.file, *("-" for _ in SESSION_MEASURES))
    shares = {name: f"{getattr(figures, name) * 100:5.1f}" for name in SESSION_MEASURES}
    return (file.file, *(f"{text} {_points(change[name], name)}" if change else text for name, text in shares.items()))


def _row_of_weak_evidence(file: FileResult) -> tuple[str, ...]:
    weak = file.runs[0].summary.weak
    return (file.file, *map(_percent, (weak.evidence_at_5, weak.evidence_at_10, weak.evidence_at_20)))


def _row_of_nothing_close(file: FileResult) -> tuple[str, ...]:
    weak, elsewhere = file.runs[0].summary.weak, file.elsewhere
    shares = [weak.nothing_close, weak.nothing_close_adversarial]
    if elsewhere is not None:
        shares += [elsewhere.nothing_close, elsewhere.nothing_close_renamed]
    return (file.file, *map(_percent, shares))


def _print_notes(file: FileResult) -> None:
    if file.skipped or file.unresolved:
        terminal.note(
            f"{file.file}: {file.skipped:,} questions without evidence among the turns were skipped; "
            f"{file.unresolved:,} evidence ids are not turns"
        )
    for run in file.runs:
        if run.used is not None and run.used.facts is not None:
            shown = [hit in answer.facts for answer in run.answers for hit in answer.hits[:5]]
            terminal.note(
                f"{file.file}, {run.name}: {run.used.facts:,} facts were drawn; they are {sum(shown):,} of the "
                f"{len(shown):,} first 5 hits"
            )
        if run.summary.degraded:
            terminal.note(
                f"{file.file}, {run.name}: {run.summary.degraded:,} of {len(run.answers):,} answers used keywords "
                f"only: {run.summary.degraded_because}",
                "red" if result.unexpectedly_degraded(run) else "dim",
            )


def _change(run: Run, against: Path | None) -> Mapping[str, Paired] | None:
    """The change that is shown for a run; None or empty if there is none."""
    change = run.against_default if against is None else run.against_earlier
    return None if change is None else change.overall


def _cells(figures: Figures | None, change: Mapping[str, Paired] | None) -> tuple[str, ...]:
    """Each of `MEASURES`, and its change if there is one."""
    if figures is None:
        return ("-",) * len(MEASURES)
    found = []
    for name in MEASURES:
        value = getattr(figures, name)
        text = f"{value:.3f}" if name == "mrr" else f"{value * 100:5.1f}"
        found.append(f"{text} {_points(change[name], name)}" if change else text)
    return tuple(found)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share * 100:5.1f}"


def _points(paired: Paired, measure: str) -> str:
    return _signed(paired.difference, measure) + ("*" if paired.significant else "")


def _interval(paired: Paired, measure: str) -> str:
    return f"{_signed(paired.low, measure)} to {_signed(paired.high, measure)}"


def _signed(value: float, measure: str) -> str:
    """Recall in percentage points, MRR as a fraction."""
    return f"{value:+.3f}" if measure == "mrr" else f"{value * 100:+.1f}"
