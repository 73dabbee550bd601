"""Pages and panels of the console. Memory models declare theirs in a module `panels`."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any

from starlette.responses import Response

from recallog_schemas.models import import_parts

ROOT = "/console"
"""All paths except the start page begin with it; no path of the API does."""


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

    Its arguments are in the query string: a name in the path could be mistaken for parts of the path.
    """

    path: str
    """Its path after `ROOT`, such as `/space`; "" for the start page."""
    show: Callable[[Any], Awaitable[Response]]
    """Answers a visit, see `visit.Visit`."""
    link: str = ""
    """Its name in the navigation; "" if it is not there."""
    place: Place = Place.START
    """The part of the navigation that lists it: START, SPACE or AGENT. The latter two pass their names as arguments."""
    needs: str = ""
    """The navigation lists the page only for callers who may call this operation."""
    key: str = ""
    """The keyboard shortcut, such as `g s`; "" if there is none."""
    acts: bool = False
    """Whether it is a POST of a form, with a token against forgery; otherwise it is a GET, which does not change
    anything."""

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
    """The page that contains it."""
    operation: str
    """The qualified name of the operation, such as `tiers.stats`. The panel is left out if the caller may not call
    it. It gets the arguments of the page for which it has parameters."""
    template: str
    """The template. Its variables are `answer`, and `given` with the arguments of the page. The name of a model's
    template begins with the model's name: `tiers/stats.html`."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of the operation."""
    required: Sequence[str] = ()
    """Arguments, besides the required ones of the operation, without which the panel is left out."""
    hides_empty: bool = False
    """Whether the panel is left out if its answer has no content."""
    order: int = 0
    """Position among the panels of its page, in ascending order."""
    context: Callable[[Any], Mapping[str, Any]] = lambda answer: {}
    """Computes the template variable `context` from the answer, for example a picture."""


@cache
def panels_of_models(place: Place) -> Sequence[Panel]:
    """The panels of memory models on one page."""
    found = [each for part in import_parts("recallog_service", "panels") for each in getattr(part, "PANELS", ())]
    return sorted((each for each in found if each.place == place), key=lambda each: each.order)


@cache
def pages_of_models() -> Sequence[Page]:
    """The pages of memory models."""
    return [each for part in import_parts("recallog_service", "panels") for each in getattr(part, "PAGES", ())]
