"""Queries about one agent or space: `episodic`, `timeline`, `salient`, `explain`, `beliefs`, `scene`, `context`."""

import json
from collections.abc import Sequence
from typing import Annotated

import typer

from recallog import AroundView, Memory, Position, TimelinePage
from recallog_schemas import limits
from recallog_schemas.kinds import SalienceWeights
from recallog_schemas.views import lines
from recallog_service.cli import terminal
from recallog_service.cli.terminal import Agent, At, Home, Json, Space

Query = Annotated[
    str | None, typer.Argument(help="Text that relevance is measured by; put -- before one that begins with a dash.")
]
TopK = Annotated[int | None, typer.Option(min=1, help="How many events; default: the agent's, else 8.")]
Turn = Annotated[int | None, typer.Option(min=0, help="Turn to measure recency from; default: the space's.")]

_VERDICT_STYLES = {"remembered": "green", "unknown": "red", "dead_letter": "red"}


def register(app: typer.Typer) -> None:
    app.command("episodic", epilog="Example: recallog episodic village baker --as-of 0:120")(episodic_command)
    app.command("timeline", epilog="Example: recallog timeline village baker --kind agent.thought --limit 20")(
        timeline_command
    )
    app.command("salient", epilog='Example: recallog salient village baker "who owes the miller?" --top-k 5')(
        salient_command
    )
    app.command("explain", epilog='Example: recallog explain village e-17 baker --query "who owes the miller?"')(
        explain_command
    )
    app.command("beliefs", epilog="Example: recallog beliefs village widow --reader smith")(beliefs_command)
    app.command("scene", epilog="Example: recallog scene village --as-of 0:120")(scene_command)
    app.command("context", epilog="Example: recallog context village baker --budget-tokens 2000 > prompt.txt")(
        context_command
    )


def episodic_command(
    space: Space,
    agent: Agent,
    window: Annotated[int | None, typer.Option(min=1, help="How many events; default: the agent's, else 8.")] = None,
    as_of: At = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Show the recent events of an agent: its own, those addressed to it, and shared ones."""
    view = terminal.ask(
        lambda memory: memory.episodic(space, agent, window=window, as_of=terminal.as_of(as_of)), home, as_json=as_json
    )
    if as_json:
        terminal.print_json(view)
    else:
        terminal.print_lines(view.format())


def timeline_command(
    space: Space,
    agent: Agent,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Number of events on a page.")] = 50,
    before: Annotated[
        str | None, typer.Option(metavar="POSITION", help="Only events before this position, for the next page.")
    ] = None,
    around: Annotated[
        str | None, typer.Option(metavar="ID", help="Show previews of this event and its neighbours instead of a page.")
    ] = None,
    entries_before: Annotated[
        int, typer.Option(min=0, max=limits.AROUND_EVENTS_MAX, help="With --around: number of events before it.")
    ] = limits.AROUND_EVENTS,
    entries_after: Annotated[
        int, typer.Option(min=0, max=limits.AROUND_EVENTS_MAX, help="With --around: number of events after it.")
    ] = limits.AROUND_EVENTS,
    session: Annotated[str | None, typer.Option(help="Only this session.")] = None,
    kind: Annotated[list[str] | None, typer.Option(help="Only this kind; repeatable.")] = None,
    since: Annotated[str | None, typer.Option(metavar="TIME", help="Only events from this time on.")] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Only events before this time.")] = None,
    as_of: At = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Show the events that an agent may see, in order: the newest page, an older one, or those around one event.

    With --around the output is previews with ids; `recallog entries` shows whole events.
    """
    if around is not None and before is not None:
        raise typer.BadParameter("cannot be combined with --around", param_hint="--before")

    async def work(memory: Memory) -> TimelinePage | AroundView:
        span = terminal.moment(since) if since else None, terminal.moment(until) if until else None
        moment = terminal.as_of(as_of)
        if around is not None:
            return await memory.timeline(
                space, agent, around=around, entries_before=entries_before, entries_after=entries_after,
                session=session, kinds=kind or None, since=span[0], until=span[1], as_of=moment,
            )  # fmt: skip
        return await memory.timeline(
            space, agent, limit=limit, before=Position.parse(before) if before else None,
            session=session, kinds=kind or None, since=span[0], until=span[1], as_of=moment,
        )  # fmt: skip

    shown = terminal.ask(work, home, as_json=as_json)
    if as_json:
        terminal.print_json(shown)
    elif isinstance(shown, AroundView):
        _print_around(shown)
    else:
        _print_page(shown)


def _print_page(page: TimelinePage) -> None:
    terminal.print_lines(lines(page.items) or "(nothing)")
    if page.older is not None:
        terminal.note(f"older events: --before {page.older}")
    if page.kept_from is not None:
        terminal.note(f"the views hold events from {page.kept_from} on; for older ones use recallog tail")


def _print_around(view: AroundView) -> None:
    """Print each event with its id, and the requested one in bold."""
    for event in view.events:
        anchor = event is view.anchor
        terminal.print_lines(f"{'>' if anchor else ' '} {event.id}  {event.line()}", "bold" if anchor else "")


def salient_command(
    space: Space,
    agent: Agent,
    query: Query = None,
    top_k: TopK = None,
    turn: Turn = None,
    as_of: At = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Show the events that matter most to an agent now by relevance, recency and importance, oldest first."""
    view = terminal.ask(
        lambda memory: memory.salient(space, agent, query, top_k=top_k, turn=turn, as_of=terminal.as_of(as_of)),
        home,
        as_json=as_json,
    )
    if as_json:
        terminal.print_json(view)
        return
    terminal.print_lines(view.format())
    terminal.note(f"{view.considered:,} events considered, in turn {view.turn:,}, by {_weights(view.weights)}")


def explain_command(
    space: Space,
    event_id: Annotated[str, typer.Argument(help="Id of the event.")],
    agent: Agent,
    query: Annotated[str | None, typer.Option(help="Text that relevance is measured by.")] = None,
    top_k: TopK = None,
    turn: Turn = None,
    as_of: At = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Explain why an agent remembers an event, or why not. The exit code is 1 if there is no such event."""
    found = terminal.ask(
        lambda memory: memory.explain(
            space, event_id, agent, query=query, top_k=top_k, turn=turn, as_of=terminal.as_of(as_of)
        ),
        home,
        as_json=as_json,
    )
    unknown = found.verdict == "unknown"
    if as_json:
        terminal.print_json(found)
    else:
        terminal.print_lines(found.verdict.replace("_", " "), _VERDICT_STYLES.get(found.verdict, "yellow"))
        terminal.print_lines(f"  {found.why}")
        if found.memory is not None:
            terminal.print_lines(f"  {found.memory.line()}")
            terminal.print_lines(f"  {found.sum()}")
            terminal.print_lines(f"  rank {found.rank:,} of {found.considered:,} by salience in turn {found.turn:,}")
        if unknown:
            terminal.note(f"list the ids: recallog tail --space {space} --json")
    raise typer.Exit(1 if unknown else 0)


def beliefs_command(
    space: Space,
    agent: Agent,
    reader: Annotated[str | None, typer.Option(help="Only the beliefs that this agent may see.")] = None,
    as_of: At = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Show the beliefs of an agent, and the events that each belief is based on."""
    view = terminal.ask(
        lambda memory: memory.beliefs(space, agent, reader, as_of=terminal.as_of(as_of)), home, as_json=as_json
    )
    if as_json:
        terminal.print_json(view)
        return
    for belief in view.beliefs:
        terminal.print_lines(belief.line())
        print_based_on(belief.based_on)
    if not view.beliefs:
        terminal.print_lines(view.format())


def print_based_on(ids: Sequence[str]) -> None:
    """Print the evidence of the belief that was printed last."""
    if ids:
        terminal.print_lines(f"  based on {', '.join(ids)}", "dim")


def scene_command(space: Space, as_of: At = None, home: Home = None, as_json: Json = False) -> None:
    """Show the scene of a space: the newest shared event of each scene kind, oldest first."""
    view = terminal.ask(lambda memory: memory.scene(space, as_of=terminal.as_of(as_of)), home, as_json=as_json)
    if as_json:
        terminal.print_json(view)
    else:
        terminal.print_lines(view.format())


def context_command(
    space: Space,
    agent: Agent,
    scene: Annotated[str | None, typer.Option(help="Text of the scene; default: the space's scene.")] = None,
    query: Annotated[str | None, typer.Option(help="Text that the memories are chosen by; default: the scene.")] = None,
    extra: Annotated[str | None, typer.Option(help="Additional text for the prompt.")] = None,
    output_format: Annotated[
        str | None, typer.Option(help="Text that describes the form of the answer; the last part of the prompt.")
    ] = None,
    budget_tokens: Annotated[
        int | None, typer.Option(min=1, help="Leave out the least important lines until the prompt fits.")
    ] = None,
    turn: Turn = None,
    as_of: At = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Print the prompt of an agent for a model. Stdout contains only the prompt."""
    prompt = terminal.ask(
        lambda memory: memory.context(
            space,
            agent,
            scene=scene,
            query=query,
            extra=extra,
            output_format=output_format,
            budget_tokens=budget_tokens,
            turn=turn,
            as_of=terminal.as_of(as_of),
        ),
        home,
        as_json=as_json,
    )
    if as_json:
        reflection = json.loads(prompt.reflection.model_dump_json())
        computed_at = {name: reflection[name] for name in ("generation", "checkpoint")}
        answer = {"text": str(prompt), "tokens": prompt.tokens, "dropped": prompt.dropped, "degraded": prompt.degraded}
        terminal.print_json({**answer, **computed_at, "reflection": reflection})
        return
    terminal.print_exactly(prompt)
    terminal.note(f"about {prompt.tokens:,} tokens; {prompt.dropped:,} lines left out")
    if prompt.degraded is not None:
        terminal.note(f"the recalled memories are degraded: {prompt.degraded}")
    if budget_tokens is not None and prompt.tokens > budget_tokens:
        terminal.note(f"that exceeds {budget_tokens:,}, and no other line may be left out: use a larger budget")
    if prompt.reflection.due:
        terminal.note(f"a reflection is due, and the prompt asks for it: recallog reflection {space} {agent}")


def _weights(weights: SalienceWeights) -> str:
    return f"{weights.relevance:.2f} relevance + {weights.recency:.2f} recency + {weights.importance:.2f} importance"
