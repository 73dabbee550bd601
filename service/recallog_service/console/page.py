"""Pages and panels: what the console shows, and where. Memory models declare theirs in a module `panels`."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any

from starlette.responses import Response

from recallog_schemas.models import import_parts

ROOT = "/console"
"""All paths but that of the start page begin with it; the API has no such path."""


class Place(StrEnum):
    """A page that has panels, or a part of the navigation."""

    START = "start"
    SPACE = "space"
    AGENT = "agent"
    WHY = "why"
    KNOWLEDGE = "knowledge"
    OPERATIONS = "operations"


@dataclass(frozen=True)
class Page:
    """One page, or one action of a form.

    Its arguments are in its query, so that its URL can be shared: names in paths could be taken for parts of a path.
    """

    path: str
    """Its path after `ROOT`, such as `/space`; "" for the start page."""
    show: Callable[[Any], Awaitable[Response]]
    """Answers a visit, see `visit.Visit`."""
    link: str = ""
    """Its name in the navigation; "" if it is not there."""
    place: Place = Place.START
    """Where the navigation has it: START, or SPACE or AGENT, whose names it then takes as arguments."""
    needs: str = ""
    """The operation that a caller needs to be allowed, or the navigation does not name the page."""
    key: str = ""
    """The keys that open it, such as `g s`; "" if there are none."""
    acts: bool = False
    """Whether it is a POST of a form, which has a token against forgery; otherwise it is a GET, and changes nothing."""

    @property
    def url(self) -> str:
        """The URL without arguments."""
        return f"{ROOT}{self.path}" if self.path else "/"


@dataclass(frozen=True)
class Panel:
    """A part of a page that shows the answer of one operation."""

    title: str
    """Its heading."""
    place: Place
    """The page that has it."""
    operation: str
    """The qualified name of the operation, such as `tiers.stats`. The panel is left out where a caller may not call
    it. Its arguments are those of the page that it has parameters for."""
    template: str
    """Shows the answer, which it has as `answer`, with the arguments of the page as `given`. That of a model begins
    with the model's name: `tiers/stats.html`."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of the operation."""
    required: Sequence[str] = ()
    """Arguments without which a page leaves the panel out, besides those that the operation requires."""
    hides_empty: bool = False
    """Whether the panel is left out if its answer has no content."""
    order: int = 0
    """Its place among the panels of its page: the smallest number comes first."""
    context: Callable[[Any], Mapping[str, Any]] = lambda answer: {}
    """Makes from the answer what the template has as `context`, such as a picture."""


@cache
def panels_of_models(place: Place) -> Sequence[Panel]:
    """The panels of memory models on one page."""
    found = [each for part in import_parts("recallog_service", "panels") for each in getattr(part, "PANELS", ())]
    return sorted((each for each in found if each.place == place), key=lambda each: each.order)


@cache
def pages_of_models() -> Sequence[Page]:
    """The pages of memory models."""
    return [each for part in import_parts("recallog_service", "panels") for each in getattr(part, "PAGES", ())]
