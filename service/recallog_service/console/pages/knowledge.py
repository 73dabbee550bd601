"""What an agent knows: panels of memory models, one at a time, with filters in the URL."""

from starlette.responses import Response

from recallog_schemas.errors import Forbidden, OutOfRange
from recallog_service.console.page import Page, Panel, Place, panels_of_models
from recallog_service.console.visit import OPERATIONS, Visit


async def knowledge(visit: Visit) -> Response:
    """The panel of the operation that `show` names; by default the first panel."""
    agent = {"space": visit.text("space"), "agent": visit.text("agent")}
    panels = panels_of_models(Place.KNOWLEDGE)
    tabs = [each for each in panels if _find_required(each) <= agent.keys() and visit.may(each.operation, **agent)]
    wanted = visit.given.get("show", tabs[0].operation if tabs else "")
    chosen = next((each for each in panels if each.operation == wanted), None)
    if not tabs or chosen is None or not _find_required(chosen) <= visit.given.keys():
        raise OutOfRange(f"there is no page {wanted}", path="show")
    shown = await visit.panel(chosen, **visit.given)
    if shown is None:
        raise Forbidden
    known = OPERATIONS[chosen.operation].parameters
    arguments = {name: value for name, value in {**visit.given, **chosen.arguments}.items() if name in known}
    return await visit.page(
        "knowledge.html",
        title=chosen.title,
        command=(chosen.operation, arguments),
        tabs=tabs if chosen in tabs else [*tabs, chosen],
        shown=shown,
    )


def _find_required(panel: Panel) -> set[str]:
    """The arguments that a panel requires from the page. A panel that requires more than an agent is about one item,
    which links to it."""
    parameters = OPERATIONS[panel.operation].parameters.items()
    return {name for name, each in parameters if each.default is each.empty} - panel.arguments.keys()


PAGES = (Page("/knowledge", knowledge, "Knowledge", Place.AGENT, key="g k"),)
