"""How a terminal shows answers about entries."""

from typing import TYPE_CHECKING

from recallog_service.cli import terminal
from recallog_service.models.long_term.reasons import NOT_RETAINED

if TYPE_CHECKING:
    from recallog_schemas.models.long_term.views import Deduplicated, Retained


def _retained(view: "Retained") -> None:
    terminal.print_lines(view.format())
    if not view.ok and view.reason in NOT_RETAINED:
        terminal.note(NOT_RETAINED[view.reason])


def _deduplicated(view: "Deduplicated") -> None:
    terminal.print_lines(view.format())
    if view.proposed and not view.merged:
        terminal.note(
            "nothing was changed; read both texts, then archive some with --apply --only ID, or all with --apply"
        )


RENDERERS = {"Retained": _retained, "Deduplicated": _deduplicated}
"""By the name of the view."""
