"""Shows the hits of a search in a workspace on a terminal."""

from typing import TYPE_CHECKING

from recallog_schemas.views import one_line
from recallog_service.cli import rendering, terminal
from recallog_service.cli.rendering import WholeText

if TYPE_CHECKING:
    from recallog_schemas.models.workspace.views import WorkspaceHits


def _workspace_hits(view: "WorkspaceHits", *, full: WholeText = False) -> None:
    rendering.print_start(found=bool(view.hits), nothing_close=view.nothing_close)
    for hit in view.hits:
        above = hit.title.removeprefix(hit.key).removeprefix(": ")
        head = f"{hit.score:.3f}  {hit.key}:{hit.first}-{hit.last}{f'  {above}' if above else ''}"
        terminal.print_lines(one_line(head) + ("  (weak)" if hit.weak else ""), "dim" if hit.weak else "bold")
        rendering.print_text(hit.text, hit.quote, weak=hit.weak, full=full)
    rendering.print_end(view)


RENDERERS = {"WorkspaceHits": _workspace_hits}
"""By the name of the view."""
