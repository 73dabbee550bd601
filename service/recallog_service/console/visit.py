"""A visit: one request of one caller, with the questions that a page may ask and the responses that it can return."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from recallog import Memory
from recallog.operations.facade import all_operations
from recallog_schemas.errors import Forbidden, InvalidInput, OutOfRange, RecallogError
from recallog_service.access.grants import ANY
from recallog_service.command_lines import command_line
from recallog_service.console import forgery, rendering
from recallog_service.console.page import Page, Panel, Place, panels_of_models
from recallog_service.http.door import Door, HttpClient
from recallog_service.http.jobs import Jobs

OPERATIONS = all_operations(Memory)
NAVIGATION_ITEMS = 100
"""Maximum number of spaces, and of agents of one space, in the navigation."""

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    # Not `no-referrer`: with it, browsers do not say which origin sends a form.
    "Referrer-Policy": "same-origin",
}
"""Headers of every page: only scripts and styles of the console are loaded, and no site may show it in a frame."""


@dataclass(frozen=True)
class ShownPanel:
    """A panel with its answer, or with the error in its place."""

    panel: Panel
    answer: Any
    problem: RecallogError | None = None
    context: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Visit:
    """One request of one caller."""

    door: Door
    jobs: Jobs
    request: Request
    pages: Sequence[Page]
    key: str | None
    """The key that the caller has signed in with; None: none is needed."""
    client: HttpClient
    given: Mapping[str, str]
    """The arguments: from the query string or, for an action, from the form. Empty ones are left out."""

    # Questions of a page

    async def ask(self, operation: str, /, **arguments: Any) -> Any:
        """The answer of an operation, by its qualified name. Arguments that are None are left out. Raises the errors of
        the operation, and `Forbidden` if the grant does not cover it."""
        given = {name: value for name, value in arguments.items() if value is not None}
        return await self.door.answer(self.client, OPERATIONS[operation], given)

    def may(self, operation: str, /, **arguments: Any) -> bool:
        """Whether the caller may call an operation with these arguments. Pages hide actions that are not allowed."""
        try:
            self.client.memory.admit(OPERATIONS[operation], arguments)
        except Forbidden:
            return False
        except InvalidInput:  # wrong values do not matter: the grant is checked first
            return True
        return True

    def text(self, name: str) -> str:
        """A required argument. Raises `OutOfRange` if it is missing."""
        if name not in self.given:
            raise OutOfRange(f"{name}: is missing in the address of the page", path=name)
        return self.given[name]

    @cached_property
    def only_agent(self) -> str | None:
        """The agent that the caller acts as; None: the caller may ask about any agent."""
        grant = self.client.caller.grant
        return grant.agent if grant.is_of_one_agent else None

    async def panels(self, place: Place, /, **given: Any) -> list[ShownPanel]:
        """The panels of memory models on a page with their answers, which are requested concurrently. An error takes
        the place of its panel."""
        asked = [self.panel(each, **given) for each in panels_of_models(place)]
        return [each for each in await asyncio.gather(*asked) if each is not None]

    async def panel(self, panel: Panel, /, **given: Any) -> ShownPanel | None:
        """A panel with its answer; None if the caller may not see it, the page lacks a required argument, or there is
        nothing to show."""
        known = OPERATIONS[panel.operation].parameters
        arguments = {name: value for name, value in {**given, **panel.arguments}.items() if name in known}
        required = {name for name, each in known.items() if each.default is each.empty}
        if any(arguments.get(name) is None for name in required.union(panel.required)):
            return None
        try:
            answer = await self.ask(panel.operation, **arguments)
            if panel.hides_empty and answer.empty:
                return None
            return ShownPanel(panel, answer, context=await asyncio.to_thread(panel.context, answer))
        except Forbidden:
            return None
        except RecallogError as error:
            return ShownPanel(panel, None, error)

    # Responses

    async def page(
        self,
        template: str,
        *,
        title: str,
        command: tuple[str, Mapping[str, Any]] | str = "",
        code: int = 200,
        **context: Any,
    ) -> Response:
        """A whole page. `command` is a command line that gives the same answer, or its operation with arguments.

        Variables of the template besides `context`: `visit`, `given`, `may`, `csrf`, `nav`, `here` (the path of the
        page), and `ui` (the macros).
        """
        if isinstance(command, tuple):
            command = self.command(command[0], **command[1])
        navigation = await self._navigation()
        return await self.fragment(template, code=code, title=title, command=command, nav=navigation, **context)

    async def fragment(self, template: str, *, code: int = 200, **context: Any) -> Response:
        """A part of a page, which htmx inserts.

        It is rendered in a thread, so that a large one does not delay other requests.
        """
        known = {
            "visit": self,
            "given": self.given,
            "may": self.may,
            "csrf": forgery.token_for(self.key),
            "here": self.request.url.path,
            **context,
        }
        text = await asyncio.to_thread(rendering.render, template, known)
        return HTMLResponse(text, status_code=code, headers=HEADERS)

    def command(self, operation: str, /, **arguments: Any) -> str:
        """The command line that gives the same answer as an operation."""
        return command_line(OPERATIONS[operation], {name: value for name, value in arguments.items() if value})

    def redirect(self, url: str) -> Response:
        """A redirect to a page of the console after an action. `url` comes from `rendering.url`."""
        return RedirectResponse(url, status_code=303, headers=HEADERS)

    @property
    def is_part(self) -> bool:
        """Whether htmx requests a part of a page."""
        return self.request.headers.get("hx-request") == "true"

    async def _navigation(self) -> Mapping[str, Any]:
        """The content of the navigation: spaces, agents of the space, and pages that the caller may open."""
        space, agent = self.given.get("space"), self.given.get("agent")
        arguments = {name: value for name, value in (("space", space), ("agent", agent)) if value}
        needed = {Place.START: True, Place.SPACE: space, Place.AGENT: space and agent}
        links = [
            each
            for each in self.pages
            if each.link and needed.get(each.place) and (not each.needs or self._may_open(each, arguments))
        ]
        return {
            "links": links,
            "space": space,
            "agent": agent,
            "spaces": await self.spaces(),
            "agents": await self._agents(space) if space else (),
        }

    def _may_open(self, page: Page, arguments: Mapping[str, str]) -> bool:
        known = OPERATIONS[page.needs].parameters
        return self.may(page.needs, **{name: value for name, value in arguments.items() if name in known})

    async def spaces(self) -> Sequence[str]:
        """The spaces in the navigation: those that the grant covers."""
        with suppress(Forbidden):
            return [each.space for each in await self.ask("spaces", limit=NAVIGATION_ITEMS)]
        return [each for each in self.client.caller.grant.spaces if not each.endswith(ANY)]

    async def _agents(self, space: str) -> Sequence[str]:
        if self.only_agent is not None:
            return [self.only_agent]
        with suppress(Forbidden):
            return [each.name for each in await self.ask("agents", space=space, limit=NAVIGATION_ITEMS)]
        return ()
