"""How a terminal shows beliefs and due reflections."""

from shlex import quote
from typing import TYPE_CHECKING

from recallog_service.cli import terminal
from recallog_service.cli.rendering import print_based_on, set_threshold

if TYPE_CHECKING:
    from recallog_schemas.models.beliefs.views import BeliefsView, ReflectionView


def _beliefs(view: "BeliefsView") -> None:
    for belief, line in zip(view.beliefs, view.lines(view.beliefs), strict=True):
        terminal.print_lines(line)
        print_based_on(belief.based_on)
    if not view.beliefs:
        terminal.print_lines(view.format())


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


RENDERERS = {"BeliefsView": _beliefs, "ReflectionView": _reflection}
"""By the name of the view."""
