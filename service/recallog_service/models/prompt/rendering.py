"""Shows a prompt, and why an event is in it, on a terminal."""

import shlex
from typing import TYPE_CHECKING

from recallog_service.cli import terminal

if TYPE_CHECKING:
    from recallog_schemas.models.prompt.views import ContextView, Explanation

_VERDICT_STYLES = {"remembered": "green", "unknown": "red", "dead_letter": "red"}


def _context(view: "ContextView") -> None:
    """Print a prompt. Stdout gets only the prompt itself."""
    terminal.print_exactly(view.text)
    terminal.note(f"about {view.tokens:,} tokens; {view.dropped:,} lines left out, {view.shortened:,} cut")
    if view.degraded is not None:
        terminal.note(f"the recalled memories are degraded: {view.degraded}")
    if view.reflection.due:
        asked = shlex.join(["recallog", "reflection", view.space, view.agent])
        terminal.note(f"a reflection is due, and the prompt asks for it: {asked}")


def _explanation(view: "Explanation") -> None:
    verdict, *rest = view.format().split("\n")
    terminal.print_lines(verdict, _VERDICT_STYLES.get(view.verdict, "yellow"))
    terminal.print_lines("\n".join(rest))
    if not view.ok:
        terminal.note(f"list the ids: recallog tail --space {shlex.quote(view.space)} --json")


RENDERERS = {"ContextView": _context, "Explanation": _explanation}
"""By the name of the view."""
