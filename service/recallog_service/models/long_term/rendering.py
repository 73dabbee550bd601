"""Shows answers about entries on a terminal."""

from typing import TYPE_CHECKING

from recallog_service.cli import terminal

if TYPE_CHECKING:
    from recallog_schemas.models.long_term.views import Deduplicated, Retained


def _print_retained(view: "Retained") -> None:
    terminal.print_lines(view.format())
    if view.explanation:
        terminal.note(view.explanation)


def _print_deduplicated(view: "Deduplicated") -> None:
    terminal.print_lines(view.format())
    if view.proposed and not view.merged:
        terminal.note(
            "nothing was changed; read both texts, then archive some with --apply --only ID, or all with --apply"
        )


RENDERERS = {"Retained": _print_retained, "Deduplicated": _print_deduplicated}
"""By the name of the view."""
