"""Shows views on a terminal: functions with colours, tables and hints. A view without a function is shown by
`format()`.

The keyword-only parameters of a function become options of the commands that answer its view.
"""

import shlex
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recallog_schemas import limits
from recallog_schemas.invented_times import is_invented
from recallog_schemas.models import import_parts
from recallog_schemas.views import count_noun, indent_lines, one_line
from recallog_service.cli import terminal

if TYPE_CHECKING:
    from recallog_schemas import views
    from recallog_schemas.kinds import SalienceWeights

_INDEX = "index"
"""The views of the semantic index in `status`."""
_SHOWN_MAX = 10
"""Maximum number of agents that `status` lists; --json lists more."""

_INDENT = " " * 7
_HIT_LINES = 3
"""Lines of text that `recall` prints for a hit."""

ExplainScore = Annotated[
    bool, typer.Option("--explain", help="Print the parts of each hit's score, and the generations that answered.")
]
WholeText = Annotated[
    bool,
    typer.Option("--full", help=f"Print the whole text of each hit; default: {_HIT_LINES} lines of its best passage."),
]

PictureFile = Annotated[
    Path | None, typer.Option("--picture", help="Write a picture of the lineage to this file, as SVG.")
]


def renderer(view: type[Any]) -> Callable[..., None]:
    """The function that prints answers of this type."""
    # By name, so that a command imports only the module of the view that it prints.
    found = _RENDERERS.get(view.__name__)
    if found is None:
        of_models = import_parts("recallog_service", "rendering")
        found = next((each.RENDERERS[view.__name__] for each in of_models if view.__name__ in each.RENDERERS), None)
    return found or _print_formatted


def _print_formatted(view: "views.View") -> None:
    terminal.print_lines(view.format())


def _timeline(page: "views.TimelinePage") -> None:
    terminal.print_lines(page.format())
    if page.older is not None:
        terminal.note(f"older events: --before {page.older}")
    if page.kept_from is not None:
        terminal.note(f"the views hold events from {page.kept_from} on; for older ones use recallog tail")


def note_rest(answer: object, limit: int | None = None) -> None:
    """Print how to get the next page, or how many items are beyond `--limit` or the bound of an answer."""
    following, left_out = getattr(answer, "next", None), getattr(answer, "left_out", 0)
    if following is not None:
        terminal.note(f"more: --cursor {shlex.quote(following)}")
    if limit is not None and left_out:
        terminal.note(f"{left_out:,} more: raise --limit")
    elif isinstance(left_out, int) and left_out:
        rest = getattr(answer, "rest", "")
        terminal.note(f"{left_out:,} more do not fit into one answer{f': {rest}' if rest else ''}")


def _around(view: "views.AroundView") -> None:
    """Print each event with its id, and the requested one in bold."""
    for event, line in zip(view.events, view.lines(view.events), strict=True):
        anchor = event is view.anchor
        terminal.print_lines(f"{'>' if anchor else ' '} {one_line(event.id)}  {line}", "bold" if anchor else "")


def _lineage(view: "views.Lineage", *, picture: PictureFile = None) -> None:
    terminal.print_lines(view.format())
    write_picture(view, picture)


def write_picture(view: "views.Lineage", picture: Path | None = None) -> None:
    """Write the picture that `--picture` asks for."""
    if picture is not None:
        from recallog_service import lineage_picture

        try:
            picture.write_text(lineage_picture.draw_lineage(view), encoding="utf-8")
        except OSError as error:
            raise typer.BadParameter(f"cannot write {picture}: {error.strerror}", param_hint="--picture") from None


def _salient(view: "views.SalientView") -> None:
    terminal.print_lines(view.format())
    terminal.note(f"{view.considered:,} events considered, in turn {view.turn:,}, by {_weights(view.weights)}")


def _weights(weights: "SalienceWeights") -> str:
    return f"{weights.relevance:.2f} relevance + {weights.recency:.2f} recency + {weights.importance:.2f} importance"


def print_based_on(ids: Sequence[str]) -> None:
    """Print the evidence of the belief that was printed last."""
    if ids:
        terminal.print_lines(one_line(f"  based on {', '.join(ids)}"), "dim")


def _recall(view: "views.RecallView", *, full: WholeText = False, explain: ExplainScore = False) -> None:
    from recallog_schemas.views.grouping import group_hits  # most commands do not need it

    print_start(found=bool(view.hits), nothing_close=view.nothing_close, notes=[time.note for time in view.times])
    for first, *others in group_hits(view.hits):
        event = first.event
        head = f"{first.score:.3f}  {event.id}  {event.agent}{_when(event.at)}"
        terminal.print_lines(one_line(head + _mark(first)), "dim" if first.weak else "bold")
        print_text(first.text, first.quote, weak=first.weak, full=full)
        _print_why(first, view, explain=explain)
        for hit in others:
            _print_further(hit, event.id, full=full)
            _print_why(hit, view, explain=explain)
    print_end(view, explain=explain)


def _print_further(hit: "views.RecallHit", first: str, *, full: bool) -> None:
    """Print a hit that is not the first of its group: the beginning of its text in one line, or its whole text."""
    head = one_line(f"+ {hit.event.id}  {hit.event.agent}{_mark(hit, first)}")
    line = head if full else one_line(f"{head}: {hit.quote}")
    terminal.print_lines(_INDENT + terminal.first_lines(line, 1, len(_INDENT))[0], "dim" if hit.weak else "")
    if full:
        print_text(hit.text, hit.quote, weak=hit.weak, full=True)


def _print_why(hit: "views.RecallHit", view: "views.RecallView", *, explain: bool) -> None:
    """Print the explained score of a hit if `explain` is true."""
    for line in _why(hit, view) if explain else ():
        terminal.print_lines(f"{_INDENT}{line}", "dim")


def _when(at: datetime) -> str:
    """Two spaces and the time; "" for a time that ingest invented."""
    return "" if is_invented(at) else f"  {at:%Y-%m-%d %H:%M:%S}"


def _mark(hit: "views.RecallHit | views.SearchHit", first: str | None = None) -> str:
    """Remarks about a hit. If `first`, the hit above, supersedes this hit, it is not named again."""
    also = f"  (also {', '.join(hit.also)})" if hit.also else ""
    by = f": {hit.superseded_by} says what holds now" if hit.superseded_by not in (None, first) else ""
    also += f"  ({hit.note}{by})" if hit.note else ""
    also += _describe_source(hit)
    return f"{also}  (weak)" if hit.weak else also


def _describe_source(shown: "views.Sourced") -> str:
    return f"  (from: {shown.trust})" if shown.source_label else ""


def _why(hit: "views.RecallHit", view: "views.RecallView") -> Iterable[str]:
    """The score of a hit as a sum, then its id, position and source."""
    parts = [f"{name} {value:.3f}" for name, value in hit.parts.items() if value]
    yield f"{' + '.join(parts)} = {hit.score:.3f}"
    cosine = "" if hit.similarity is None else f"; cosine {hit.similarity:.3f}"
    by_index = hit.source == "index"
    generation, checkpoint = (view.index, view.index_checkpoint) if by_index else (view.generation, view.checkpoint)
    made = f"generation {generation}, checkpoint {checkpoint}"
    yield f"{one_line(hit.event.id)} at {hit.position}, of the {hit.source}: {made}{cosine}"


def _search(page: "views.SearchPage") -> None:
    print_start(found=bool(page.hits), nothing_close=page.nothing_close, notes=[time.note for time in page.times])
    for hit in page.hits:
        head = f"{hit.score:.4f}  {hit.id}{_when(hit.at)}  {hit.agent}  {hit.kind}{_mark(hit)}"
        terminal.print_lines(one_line(f"{head}  ~{hit.tokens:,} tokens  {hit.preview}"), "dim" if hit.weak else "")
    for found in page.external:
        terminal.print_lines(found.format())
    if page.external_reason is not None:
        terminal.note(f"external sources: {page.external_reason}")
    print_end(page)


def print_text(text: str, quote: str, *, weak: bool, full: bool) -> None:
    """Print the whole text of a hit, or the first lines of its best passage."""
    for line in text.splitlines() if full else terminal.first_lines(quote, _HIT_LINES, len(_INDENT)):
        terminal.print_lines(f"{_INDENT}{line}", "dim" if weak else "")


def print_start(*, found: bool, nothing_close: bool, notes: Sequence[str] = ()) -> None:
    """Print the lines before the hits: `notes`, and a remark if there are no hits or only weak ones."""
    for note in notes:
        terminal.print_lines(note, "dim")
    if not found:
        terminal.print_lines("(nothing)")
    elif nothing_close:
        terminal.print_lines("nothing close; the nearest memories:")


def print_end(view: "views.Recalled", *, explain: bool = False) -> None:
    """Print one line: how many memories were compared, by which channels, and why the answer is degraded. `explain`
    adds the generation and checkpoint."""
    parts = [f"{view.considered:,} memories compared by {', '.join(view.channels)} ({view.preset or view.fusion})"]
    if view.index_behind:
        parts.append(f"the index is {view.index_behind:,} positions behind")
    if view.degraded is not None:
        parts.append(f"degraded: {view.degraded}")
    if explain:
        indexed = view.index is not None
        generation, checkpoint = (view.index, view.index_checkpoint) if indexed else (view.generation, view.checkpoint)
        source = "index" if indexed else "views"
        parts.append(f"the {source} answered: generation {generation}, checkpoint {checkpoint}")
    terminal.note("; ".join(parts))


def _entries(view: "views.EntriesView") -> None:
    for shown in view.entries:
        event = shown.event
        head = f"{event.id}  {shown.position}{_when(event.at)}  {event.agent}  {event.kind}{_describe_source(shown)}"
        terminal.print_lines(one_line(head), "bold")
        terminal.print_lines(indent_lines(shown.text))
    if not view.entries:
        terminal.print_lines("(nothing)")
    if view.missing:
        shown_ids = one_line(", ".join(view.missing[:_SHOWN_MAX])) + (", …" if len(view.missing) > _SHOWN_MAX else "")
        terminal.note(f"unknown, or of events that {view.agent} may not see: {shown_ids}")


def _spaces(view: "views.SpacesView") -> None:
    rows = [(s.space, f"{s.events:,}", s.agents, s.sessions, s.first, s.last) for s in view]
    _table(("space", "events", "agents", "sessions", "first", "last"), rows)


def _agents(view: "views.AgentsView") -> None:
    _table(("agent", "events", "first", "last"), _spans(view.items))


def _spans(spans: Sequence["views.AgentView"]) -> list[tuple[object, ...]]:
    return [(span.name, f"{span.events:,}", span.first, span.last) for span in spans]


def _space(detail: "views.SpaceDetail") -> None:
    space = detail.activity
    if space is None:
        terminal.print_lines("the space has no events")
        return
    terminal.print_lines(f"{space.space}: {count_noun(space.events, 'event')}, from {space.first} to {space.last}")
    for title, rows in (("agents", detail.agents), ("sessions", detail.sessions), ("kinds", detail.kinds)):
        terminal.print_lines("")
        _table((title, "events", "first", "last"), _spans(rows))


def _kinds(found: "views.KindsView | views.Catalogue") -> None:
    columns = ("kind", "importance", "shared", "role", "version", "text", "payload fields", "from")
    rows = [
        (
            kind.name,
            f"{kind.importance:.2f}",
            "yes" if kind.shared else "",
            kind.role,
            kind.schema_version,
            kind.text,
            " ".join(kind.fields),
            f"space {kind.space}" if kind.space is not None else "catalogue",
        )
        for kind in found.kinds
    ]
    _table(columns, rows)


def set_threshold(space: str, agent: str) -> str:
    """The command that lets reflections of `agent` fall due."""
    return shlex.join(
        ["recallog", "publish", space, agent, "agent.configured", "--payload", '{"reflection_threshold": 20}']
    )


def _pending(view: "views.PendingView") -> None:
    if not view.items:
        terminal.print_lines("no trigger is due")
        return
    _table(_DUE_COLUMNS, _due(view.items))
    terminal.note("answer them: recallog react")


_DUE_COLUMNS = ("space", "agent", "kind", "about")


def _due(triggers: Sequence["views.PendingTrigger"]) -> list[tuple[object, ...]]:
    return [(due.space, due.agent, due.kind, due.amount) for due in triggers]


def _status(status: "views.Status") -> None:
    terminal.print_lines(status.format().split("\n")[0])
    index = f", index {status.index_bytes / 1e6:,.1f} MB" if status.index_bytes else ""
    sizes = f"ledger {status.ledger_bytes / 1e6:,.1f} MB, views {status.views_bytes / 1e6:,.1f} MB{index}\n"
    terminal.print_lines(sizes)
    for fault in status.faults:
        terminal.print_lines(f"{fault.format()}\n", "bold red" if fault.severe else "yellow")
    _table(
        ("views", "partition", "end", "checkpoint", "lag", "generation", "building", "dead letters"),
        [
            (
                row.views,
                row.partition,
                f"{row.end:,}",
                f"{row.checkpoint:,}",
                f"{row.lag:,}",
                row.generation or "none yet",
                "-" if row.building is None else f"{row.building} at {row.building_checkpoint}",
                f"{row.dead_letters:,}" + (" (some of a future schema)" if row.incomplete else ""),
            )
            for row in status.partitions
        ],
    )
    _status_pending(status)
    _status_unreflected(status)
    for problem in dict.fromkeys(row.problem for row in status.partitions if row.problem):
        terminal.note(problem)
    if any(row.lag and row.views != _INDEX for row in status.partitions):
        folded_by = "workers" if status.folded_by_workers else "the next query"
        terminal.note(f"the lag is processed by {folded_by}")
    of_index = [row for row in status.partitions if row.views == _INDEX]
    if any(row.lag for row in of_index):
        built = [-1 if row.building_checkpoint is None else row.building_checkpoint for row in of_index]
        indexed = sum(max(row.end - row.lag, last + 1) for row, last in zip(of_index, built, strict=True))
        percent = 100 * indexed // sum(row.end for row in of_index)
        terminal.note(f"{percent} % are indexed; of the rest recall compares words")
    if status.index is not None and status.index.problem:
        terminal.note(status.index.format())
    if any(row.dead_letters for row in status.partitions):
        terminal.note("list the dead letters: recallog dead-letters list")


def _status_pending(status: "views.Status") -> None:
    if not status.pending:
        return
    one = status.pending_total == 1
    due = "trigger is" if one else "triggers are"
    terminal.print_lines(
        f"\n{status.pending_total:,} {due} due{_waiting(status.oldest_pending)}: {_answered_by(status)}"
    )
    shown = status.pending[:_SHOWN_MAX]
    _table(_DUE_COLUMNS, _due(shown))
    _more(status.pending_total - len(shown))


def _waiting(oldest: "views.PendingTrigger | None") -> str:
    if oldest is None or oldest.since is None:
        return ""
    age = max(timedelta(), datetime.now(UTC) - oldest.since)
    return f", the oldest since {age_of(age)} ({oldest.kind} of {oldest.agent} in {oldest.space})"


def _answered_by(status: "views.Status") -> str:
    if status.folded_by_workers:
        return "workers in the role reactors answer them, and their /health says what keeps them from it"
    return "recallog react"


def age_of(age: timedelta) -> str:
    """A duration in its two largest units, such as `2 h 5 min`."""
    seconds = round(age.total_seconds())
    parts = [(seconds // 86_400, "d"), (seconds // 3_600 % 24, "h"), (seconds // 60 % 60, "min"), (seconds % 60, "s")]
    first = next((number for number, (amount, _) in enumerate(parts) if amount), len(parts) - 1)
    return " ".join(
        f"{amount} {unit}" for amount, unit in parts[first : first + 2] if amount or first == len(parts) - 1
    )


def _status_unreflected(status: "views.Status") -> None:
    if not status.unreflected:
        return
    one = status.unreflected_total == 1
    terminal.print_lines(
        f"\n{status.unreflected_total:,} {'agent' if one else 'agents'} past turn {limits.UNREFLECTED_TURNS} without "
        "reflection: they do not remember events that have left their window"
    )
    shown = status.unreflected[:_SHOWN_MAX]
    _table(("space", "agent", "turn"), [(agent.space, agent.agent, f"{agent.turn:,}") for agent in shown])
    _more(status.unreflected_total - len(shown))
    terminal.note(f"set a threshold: {set_threshold(shown[0].space, shown[0].agent)}")


def _more(count: int) -> None:
    if count > 0:
        terminal.print_lines(f"and {count:,} more: recallog status --json")


def print_verified(report: "views.VerifyReport") -> None:
    """Print the digest, or each finding with its remedy, and the first differing row of each table."""
    if report.clean:
        terminal.print_lines(report.format(), "green")
        return
    for digest in report.digests:
        if digest.matches:
            terminal.print_lines(digest.summary(), "green")
    for remedy, findings in groupby(report.findings(), key=attrgetter("remedy")):
        for each in findings:
            terminal.print_lines(each.summary, "bold red")
            if each.difference is not None:
                found, expected = _around_the_difference(each.difference.found, each.difference.expected)
                terminal.print_lines(f"  view  {one_line(found)}\n  fold  {one_line(expected)}")
        if remedy:
            terminal.print_lines(f"  → {remedy}")


def _print_repair(report: "views.RepairReport") -> None:
    terminal.print_lines(report.format_repairs(), "bold red" if report.problem else "")
    print_verified(report.verified)


def _digests(digests: "views.LedgerDigests") -> None:
    """Print the digests. Stdout gets only the lines that `verify --digest` takes."""
    if digests.items:
        terminal.print_exactly("\n".join(each.format() for each in digests))
        terminal.note(
            "keep this out of reach of anyone who can change the ledger, and compare later: recallog verify --digest "
            f"{digests[0].format()}"
        )
    else:
        terminal.note("the ledger is empty")


def _around_the_difference(found: str | None, expected: str | None, width: int = 100) -> tuple[str, str]:
    """Both rows, cut to the part around their first difference."""
    if found is None or expected is None:
        return found or "(no such row)", expected or "(no such row)"
    same = next((n for n, (a, b) in enumerate(zip(found, expected, strict=False)) if a != b), 0)
    start = max(0, same - width // 2)
    lead = "…" if start else ""
    return lead + found[start : start + width], lead + expected[start : start + width]


def _plans(plans: "views.RebuildPlans") -> None:
    _table(
        ("views", "partition", "records", "replaces", "joins"),
        [
            (plan.views, plan.partition, f"{plan.records:,}", plan.replaces or "nothing", plan.joins or "-")
            for plan in plans
        ],
    )
    terminal.note("dry run: nothing was changed")


def _dead_letters(letters: "views.DeadLettersView | views.RetryReport") -> None:
    if letters.items:
        _letters(letters)
    else:
        terminal.print_lines("no dead letters")


def _dead_letter(detail: "views.DeadLetterDetail") -> None:
    _letters([detail.letter])
    terminal.print_lines(f"\n{indent_lines(detail.content)}")
    if detail.first is not None:
        terminal.print_lines(f"\n{detail.first.format()}")


def _letters(letters: Iterable["views.DeadLetter"]) -> None:
    fields = ("views", "position", "reason", "detail", "space", "kind", "id")
    _table(fields, [tuple(getattr(letter, name) or "?" for name in fields) for letter in letters])


def _print_retry(report: "views.RetryReport") -> None:
    terminal.print_lines(f"{report.applied:,} of {report.applied + len(report):,} applied")
    if report.items:
        _dead_letters(report)


def _table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    from recallog_service.cli import console

    console.print_table(columns, rows)


_RENDERERS: dict[str, Callable[..., None]] = {
    "AgentsView": _agents,
    "AroundView": _around,
    "Catalogue": _kinds,
    "DeadLetterDetail": _dead_letter,
    "DeadLettersView": _dead_letters,
    "EntriesView": _entries,
    "KindsView": _kinds,
    "Lineage": _lineage,
    "PendingView": _pending,
    "RebuildPlans": _plans,
    "RecallView": _recall,
    "RetryReport": _print_retry,
    "SalientView": _salient,
    "SearchPage": _search,
    "SpaceDetail": _space,
    "SpacesView": _spaces,
    "Status": _status,
    "TimelinePage": _timeline,
    "LedgerDigests": _digests,
    "VerifyReport": print_verified,
    "RepairReport": _print_repair,
}
