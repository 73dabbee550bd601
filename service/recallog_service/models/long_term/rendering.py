"""How a terminal shows answers about entries."""

from typing import TYPE_CHECKING

from recallog_service.cli import terminal

if TYPE_CHECKING:
    from recallog_schemas.models.long_term.views import Deduplicated, Retained

_NOT_RETAINED = {
    "balance": "the agent has too few units; an event memory.metered grants some",
    "source_erased": "one of the entries that it is based on is erased",
    "dependents": "too many entries are based on one of its sources",
    "too_large": "keep it in parts",
    "action": "the quality gate of the agent lets no log of actions pass; say what follows from it",
    "min_terms": "the quality gate of the agent asks for more content words",
}
"""By the reason of a text that was not retained: what it means, or what to do."""


def _retained(view: "Retained") -> None:
    terminal.print_lines(view.format())
    if not view.ok and view.reason in _NOT_RETAINED:
        terminal.note(_NOT_RETAINED[view.reason])


def _deduplicated(view: "Deduplicated") -> None:
    terminal.print_lines(view.format())
    if view.proposed and not view.merged:
        terminal.note(
            "nothing was changed; read both texts, then archive some with --apply --only ID, or all with --apply"
        )


RENDERERS = {"Retained": _retained, "Deduplicated": _deduplicated}
"""By the name of the view."""
