"""`recall`, `search` and `entries`: find memories by a question, as whole texts or previews, and show events by id."""

from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypedDict, TypeVar

import typer

from recallog import Memory, Position
from recallog.reading.time_travel import AsOf
from recallog.retrieval.channels import (
    DEFAULT_CHANNELS,
    KEYWORD,
    LATE_INTERACTION,
    RRF,
    SALIENCE,
    SEMANTIC,
    STRUCTURE,
    TEMPORAL,
    WEIGHTED,
)
from recallog_schemas import limits
from recallog_schemas.errors import IndexUnavailable, ViewsBehind
from recallog_schemas.views import Recalled, RecallHit, RecallView, SearchHit, SearchPage, one_line
from recallog_service.cli import terminal
from recallog_service.cli.terminal import Agent, At, Home, Json, Space

Result = TypeVar("Result")


class Channel(StrEnum):
    """The channels that can rank memories, in the order in which tables show them."""

    SEMANTIC = SEMANTIC
    KEYWORD = KEYWORD
    LATE = LATE_INTERACTION
    STRUCTURE = STRUCTURE
    TEMPORAL = TEMPORAL
    SALIENCE = SALIENCE


class Fusion(StrEnum):
    """The ways to combine the channels into one score."""

    WEIGHTED = WEIGHTED
    RRF = RRF


Query = Annotated[str, typer.Argument(help="The question; put -- before one that begins with a dash.")]
Author = Annotated[str | None, typer.Option(help="Only events by this agent.")]
Kind = Annotated[list[str] | None, typer.Option(help="Only this kind; repeatable.")]
Session = Annotated[str | None, typer.Option(help="Only this session.")]
Since = Annotated[str | None, typer.Option(metavar="TIME", help="Only events from this time on.")]
Until = Annotated[str | None, typer.Option(metavar="TIME", help="Only events before this time.")]
MinSimilarity = Annotated[float | None, typer.Option(help="Minimum cosine of hits whose cosine is known.")]
Fused = Annotated[Fusion, typer.Option(help="How the channels are combined into one score.")]
Channels = Annotated[
    list[Channel] | None,
    typer.Option(
        "--channel", help="Rank by this channel; repeatable.", show_default=", ".join(sorted(DEFAULT_CHANNELS))
    ),
]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Do not wait until the index contains all events.")]
After = Annotated[
    str | None, typer.Option(metavar="POSITION", help="Wait until the views contain this position, for example 0:41.")
]
Index = Annotated[
    str | None,
    typer.Option(
        "--index",
        envvar="RECALLOG_INDEX",
        help="embedded, off, or the URL of a Qdrant server.",
        show_default="embedded; off on a cluster",
    ),
]


def register(app: typer.Typer) -> None:
    app.command("recall", epilog='Example: recallog recall village baker "who owes the miller?" --explain')(
        recall_command
    )
    app.command("search", epilog='Example: recallog search village baker "who owes the miller?" --limit 50')(
        search_command
    )
    app.command("entries", epilog="Example: recallog entries village baker e-17 e-23 --json")(entries_command)


def recall_command(
    space: Space,
    agent: Agent,
    query: Query,
    top_k: Annotated[int, typer.Option(min=1, max=limits.RECALL_HITS_MAX, help="Number of memories.")] = (
        limits.RECALL_HITS
    ),
    author: Author = None,
    kind: Kind = None,
    session: Session = None,
    since: Since = None,
    until: Until = None,
    min_similarity: MinSimilarity = None,
    fusion: Fused = Fusion.WEIGHTED,
    channel: Channels = None,
    no_wait: NoWait = False,
    after: After = None,
    as_of: At = None,
    explain: Annotated[bool, typer.Option("--explain", help="Print the parts of each hit's score.")] = False,
    home: Home = None,
    index: Index = None,
    as_json: Json = False,
) -> None:
    """Find the memories of an agent that best answer a question, best first.

    Waits until the index contains all published events, unless --no-wait is given.
    """

    async def question(memory: Memory) -> RecallView:
        chosen = _chosen(author, kind, session, since, until, min_similarity, fusion, channel, after, as_of)
        return await memory.recall(space, agent, query, top_k=top_k, **chosen)

    view = _ask(question, space, home, index, wait=not no_wait, as_json=as_json)
    if as_json:
        terminal.print_json(view)
        return
    for hit in view.hits:
        event = hit.event
        terminal.print_lines(f"{hit.score:.3f}  {event.at:%Y-%m-%d %H:%M:%S}  {event.agent}  {one_line(hit.text)}")
        if explain:
            for line in _why(hit, view):
                terminal.print_lines(f"       {line}", "dim")
    _print_end(view, bool(view.hits))


def search_command(
    space: Space,
    agent: Agent,
    query: Query,
    limit: Annotated[
        int, typer.Option(help=f"Number of previews, 1 to {limits.SEARCH_HITS_MAX}.")
    ] = limits.SEARCH_HITS,
    author: Author = None,
    kind: Kind = None,
    session: Session = None,
    since: Since = None,
    until: Until = None,
    min_similarity: MinSimilarity = None,
    fusion: Fused = Fusion.WEIGHTED,
    channel: Channels = None,
    no_wait: NoWait = False,
    after: After = None,
    as_of: At = None,
    home: Home = None,
    index: Index = None,
    as_json: Json = False,
) -> None:
    """Find memories as `recall` does, and print ids, previews and the size of each text in tokens.

    `recallog timeline --around ID` shows the events around a hit, and `recallog
    entries` shows whole events.
    """

    async def question(memory: Memory) -> SearchPage:
        chosen = _chosen(author, kind, session, since, until, min_similarity, fusion, channel, after, as_of)
        return await memory.search(space, agent, query, limit=limit, **chosen)

    page = _ask(question, space, home, index, wait=not no_wait, as_json=as_json)
    if as_json:
        terminal.print_json(page)
        return
    for hit in page.hits:
        terminal.print_lines(_short(hit))
    _print_end(page, bool(page.hits))


def entries_command(
    space: Space,
    agent: Agent,
    ids: Annotated[
        list[str], typer.Argument(help=f"Ids of events, at most {limits.ENTRIES_IDS_MAX}.", metavar="ID...")
    ],
    as_of: At = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Show whole events by id, in the order of the ids. Events that the agent may not see are left out."""
    view = terminal.ask(
        lambda memory: memory.entries(space, agent, ids, as_of=terminal.as_of(as_of)), home, as_json=as_json
    )
    if as_json:
        terminal.print_json(view)
        return
    for shown in view.entries:
        event = shown.event
        head = f"{event.id}  {shown.position}  {event.at:%Y-%m-%d %H:%M:%S}  {event.agent}  {event.kind}"
        terminal.print_lines(head, "bold")
        terminal.print_lines("\n".join(f"  {line}" for line in shown.text.splitlines()))
    if not view.entries:
        terminal.print_lines("(nothing)")
    if absent := len(dict.fromkeys(ids)) - len(view.entries):
        terminal.note(f"{absent:,} of the ids are unknown, or of events that {agent} may not see")


class _Chosen(TypedDict):
    """The arguments that `Memory.recall` and `Memory.search` share."""

    author: str | None
    kinds: list[str] | None
    session: str | None
    since: datetime | None
    until: datetime | None
    min_similarity: float | None
    fusion: str
    channels: list[str] | None
    after: Position | None
    as_of: AsOf | None


def _chosen(
    author: str | None,
    kinds: list[str] | None,
    session: str | None,
    since: str | None,
    until: str | None,
    min_similarity: float | None,
    fusion: Fusion,
    channels: Iterable[Channel] | None,
    after: str | None,
    as_of: str | None,
) -> _Chosen:
    """The options as arguments. Raises `InvalidEvent` for an invalid time, and `OutOfRange` for an invalid position."""
    return {
        "author": author,
        "kinds": kinds or None,
        "session": session,
        "since": terminal.moment(since) if since else None,
        "until": terminal.moment(until) if until else None,
        "min_similarity": min_similarity,
        "fusion": fusion.value,
        "channels": [channel.value for channel in channels] if channels else None,
        "after": Position.parse(after) if after else None,
        "as_of": terminal.as_of(as_of),
    }


def _ask(
    question: Callable[[Memory], Awaitable[Result]],
    space: str,
    home: Path | None,
    index: str | None,
    *,
    wait: bool,
    as_json: bool,
) -> Result:
    """The answer of the memory, once the index contains all present events if `wait` is set.

    An unavailable index is not waited for; the answer says that it is degraded.
    """

    async def work() -> Result:
        with terminal.opened(home, index=index) as (memory, _):
            async with memory:
                if wait:
                    with terminal.bar("indexing") as advance:
                        try:
                            await memory.catch_up_index(advance, partition=await memory.partition_of(space))
                        except (IndexUnavailable, ViewsBehind) as error:
                            terminal.note(f"not waiting for the index: {error}")
                return await question(memory)

    return terminal.run(work, as_json=as_json)


def _short(hit: SearchHit) -> str:
    head = f"{hit.score:.4f}  {hit.id}  {hit.at:%Y-%m-%d %H:%M:%S}  {hit.agent}  {hit.kind}  ~{hit.tokens:,} tokens"
    return f"{head}  {one_line(hit.preview)}"


def _why(hit: RecallHit, view: RecallView) -> Iterable[str]:
    """The score of a hit as a sum, then its id, position and source."""
    parts = [f"{name} {value:.3f}" for name, value in hit.parts.items() if value]
    yield f"{' + '.join(parts)} = {hit.score:.3f}"
    cosine = "" if hit.similarity is None else f"; cosine {hit.similarity:.3f}"
    by_index = hit.source == "index"
    generation, checkpoint = (view.index, view.index_checkpoint) if by_index else (view.generation, view.checkpoint)
    made = f"generation {generation}, checkpoint {checkpoint}"
    yield f"{hit.event.id} at {hit.position}, of the {hit.source}: {made}{cosine}"


def _print_end(view: Recalled, found: bool) -> None:
    """Print what computed the answer, and whether it is degraded."""
    if not found:
        terminal.print_lines("(nothing)")
    by = f"{view.considered:,} memories compared by {', '.join(view.channels)} ({view.fusion})"
    if view.index is None:
        terminal.note(f"{by}; the views answered: generation {view.generation}, checkpoint {view.checkpoint}")
    else:
        behind = f", {view.index_behind:,} positions behind" if view.index_behind else ""
        terminal.note(f"{by}; the index answered: generation {view.index}, checkpoint {view.index_checkpoint}{behind}")
    if view.degraded is not None:
        terminal.note(f"degraded: {view.degraded}")
