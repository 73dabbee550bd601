"""The console panels of entries, and the actions on one: correct, retract, forget."""

from starlette.responses import Response

from recallog_service.console.page import Page, Panel, Place
from recallog_service.console.rendering import url
from recallog_service.console.visit import Visit


async def correct(visit: Visit) -> Response:
    """Give an entry another text."""
    await visit.ask("long_term.update", **_entry(visit), text=visit.text("text"))
    return _back(visit)


async def retract(visit: Visit) -> Response:
    """Retract a wrong entry."""
    await visit.ask("long_term.retract", **_entry(visit), reason=visit.given.get("reason"))
    return _back(visit)


async def forgetting(visit: Visit) -> Response:
    """A preview of what forgetting an entry erases."""
    entry = _entry(visit)
    found = await visit.ask("long_term.get", **entry)
    lineage = await visit.ask("lineage", space=entry["space"], agent=entry["agent"], event_id=entry["entry_id"])
    command = ("long_term.forget", {**entry, "entry_ids": [entry["entry_id"]]})
    return await visit.page(
        "long_term/forget.html",
        title="Forget an entry",
        command=command,
        entry=found.entry,
        dependents=[each for each in lineage.products if each.memory is not None and each.relation == "source"],
    )


async def forget(visit: Visit) -> Response:
    """Erase an entry from the views, the index and their past states."""
    space, agent, id_ = _entry(visit).values()
    await visit.ask("long_term.forget", space=space, agent=agent, entry_ids=[id_], reason=visit.given.get("reason"))
    return _back(visit)


def _entry(visit: Visit) -> dict[str, str]:
    return {"space": visit.text("space"), "agent": visit.text("agent"), "entry_id": visit.text("id")}


def _back(visit: Visit) -> Response:
    return visit.redirect(url("/why", space=visit.given["space"], agent=visit.given["agent"], id=visit.given["id"]))


PANELS = (
    Panel("Entries", Place.KNOWLEDGE, "long_term.list", "long_term/entries.html"),
    Panel("Entries", Place.AGENT, "long_term.list", "long_term/newest.html"),
    Panel("Entry", Place.WHY, "long_term.get", "long_term/one.html", hides_empty=True),
    Panel("Versions", Place.WHY, "long_term.audit", "long_term/audit.html", required=["entry_id"], hides_empty=True),
)
PAGES = (
    Page("/entry/correct", correct, acts=True),
    Page("/entry/retract", retract, acts=True),
    Page("/entry/forget", forgetting),
    Page("/entry/forget", forget, acts=True),
)
