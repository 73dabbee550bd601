"""Erasing a person, an entry or an event: a preview, then the erasure."""

from starlette.responses import Response

from recallog_service.console.page import Page, Place
from recallog_service.console.visit import Visit


async def erasing(visit: Visit) -> Response:
    """The form for a person; with a name, what would be erased."""
    space, unit = visit.text("space"), _unit(visit)
    report = await visit.ask("erase", space=space, dry_run=True, **unit) if unit else None
    return await _show_report(visit, report)


async def erase(visit: Visit) -> Response:
    """Erase what the preview showed."""
    unit, reason = _unit(visit), visit.given.get("reason")
    return await _show_report(visit, await visit.ask("erase", space=visit.text("space"), reason=reason, **unit))


def _unit(visit: Visit) -> dict[str, str]:
    return {name: visit.given[name] for name in ("subject", "entry") if name in visit.given}


async def _show_report(visit: Visit, report: object) -> Response:
    command = visit.command("erase", space=visit.given["space"], dry_run=True, **_unit(visit)) if report else ""
    return await visit.page("erase.html", title="Erase", command=command, report=report, unit=_unit(visit))


PAGES = (
    Page("/erase", erasing, "Erase a person", Place.SPACE, needs="erase"),
    Page("/erase", erase, acts=True),
)
