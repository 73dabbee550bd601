"""A space: its timeline, its sessions, what is due, and who may see what."""

from starlette.responses import Response

from recallog_schemas.errors import OutOfRange
from recallog_service.console.page import Page, Place
from recallog_service.console.visit import Visit


async def space(visit: Visit) -> Response:
    """The timeline of a space."""
    name = visit.text("space")
    detail = await visit.ask("space", space=name)
    if not detail.known:
        raise OutOfRange(f"there is no space {name}", path="space")
    return await visit.page("space.html", title=name, command=("space", {"space": name}), detail=detail)


PAGES = (Page("/space", space, "Timeline", Place.SPACE, key="g t"),)
