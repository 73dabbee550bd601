"""How a terminal shows beliefs and due reflections."""

from shlex import quote
from typing import TYPE_CHECKING

from recallog_service.cli import terminal
from recallog_service.cli.rendering import print_based_on, set_threshold

if TYPE_CHECKING:
    from recallog_schemas.models.beliefs.views import BeliefGraph, BeliefsView, ContradictionsView, ReflectionView


def _beliefs(view: "BeliefsView") -> None:
    for belief, line in zip(view.beliefs, view.lines(view.beliefs), strict=True):
        terminal.print_lines(line)
        print_based_on(belief.based_on)
    if not view.beliefs:
        terminal.print_lines(view.format())


def _graph(view: "BeliefGraph") -> None:
    lines = view.format().split("\n")
    for belief, line in zip(view.beliefs, lines, strict=False):
        terminal.print_lines(line, "dim" if belief.superseded_by else "yellow" if belief.unfounded else "")
    for line in lines[len(view.beliefs) :]:
        terminal.print_lines(line, _style(line))
    if unlinked := sum(each.unlinked for each in view.subjects):
        terminal.note(f"the newest beliefs on each subject are shown; {unlinked:,} are older")


def _contradictions(view: "ContradictionsView") -> None:
    for line in view.format().split("\n"):
        terminal.print_lines(line, _style(line))


def _style(line: str) -> str:
    """The style of a line that is not a belief: a subject, an edge, or the heading of a contradiction."""
    if not line.startswith("  "):
        return "bold"
    return "red" if " contradicts " in line or " disputes " in line else ""


def _reflection(view: "ReflectionView") -> None:
    first, *rest = view.format().split("\n")
    terminal.print_lines(first, "bold" if view.due else "")
    if view.threshold is None:
        terminal.note(f"set a threshold: {set_threshold(view.space, view.agent)}")
    if view.due:
        terminal.print_lines("\n".join(rest))
        if view.events > len(view.on):
            terminal.note(f"the newest {len(view.on):,} of these events are shown")
        terminal.note(f"answer it: recallog react {quote(view.space)}")


RENDERERS = {
    "BeliefsView": _beliefs,
    "BeliefGraph": _graph,
    "ContradictionsView": _contradictions,
    "ReflectionView": _reflection,
}
"""By the name of the view."""
