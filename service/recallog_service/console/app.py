"""The console as endpoints of the HTTP door: sign-in, pages, actions, static files, and pages of errors."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from urllib.parse import parse_qs, quote

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route as Endpoint

from recallog_schemas.errors import Forbidden, InvalidArgument, OutOfRange, RecallogError, Unauthorized
from recallog_service import logs
from recallog_service.console import forgery, pages, rendering
from recallog_service.console.page import ROOT, Page, pages_of_models
from recallog_service.console.rendering import STATIC
from recallog_service.console.visit import HEADERS, Visit
from recallog_service.http import requests
from recallog_service.http.door import Door
from recallog_service.http.jobs import Jobs
from recallog_service.http.naming import Names
from recallog_service.http.problems import status_of

COOKIE = "recallog_key"
"""The cookie contains the key, which is checked at each request: a revocation takes effect at once, and a restart does
not end the session."""
SIGN_IN = f"{ROOT}/sign-in"
SIGN_OUT = f"{ROOT}/sign-out"
FORM = "application/x-www-form-urlencoded"

_YEAR = "public, max-age=31536000, immutable"
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_STATIC = tuple(each for each in STATIC.iterdir() if each.suffix in _TYPES) if STATIC.is_dir() else ()


def endpoints(door: Door, jobs: Jobs) -> Sequence[Endpoint]:
    """The endpoints of the console of a memory."""
    return _Console(door, jobs).endpoints()


class _Console:
    """The pages of the console, for the callers of one door."""

    def __init__(self, door: Door, jobs: Jobs) -> None:
        self._door = door
        self._jobs = jobs
        self._pages = [*pages.PAGES, *pages_of_models()]

    def endpoints(self) -> Sequence[Endpoint]:
        return [
            *(Endpoint(f"{ROOT}/static/{each.name}", _file(each.name), methods=["GET"]) for each in _STATIC),
            *map(self._endpoint, self._pages),
            Endpoint(SIGN_IN, self._answer(self._sign_in), methods=["GET", "POST"]),
            Endpoint(SIGN_OUT, self._answer(self._sign_out), methods=["POST"]),
            Endpoint(ROOT, self._answer(_unknown), methods=["GET"]),
            Endpoint(f"{ROOT}/{{rest:path}}", self._answer(_unknown), methods=["GET", "POST"]),
        ]

    def _endpoint(self, page: Page) -> Endpoint:
        async def show(request: Request) -> Response:
            given = await self._form(request) if page.acts else requests.query(request)
            return await page.show(await self._visit(request, given))

        return Endpoint(page.url, self._answer(show), methods=["POST" if page.acts else "GET"])

    async def _visit(self, request: Request, given: Mapping[str, str]) -> Visit:
        """The visit of a request. A page counts as one call of the key, however many operations it calls."""
        key = request.cookies.get(COOKIE)
        client = await self._door.client_with(request, key)
        named = {name: _text(name, value) for name, value in given.items() if value and name != forgery.FIELD}
        return Visit(self._door, self._jobs, request, self._pages, key, client, named)

    async def _form(self, request: Request) -> Mapping[str, str]:
        """The fields of the caller's form. Raises `RequestError` for a form of another site."""
        fields = await _fields(request)
        forgery.check(fields.get(forgery.FIELD), request.cookies.get(COOKIE))
        return fields

    async def _sign_in(self, request: Request) -> Response:
        """The form that takes a key and, once it is sent, the cookie with it."""
        fields = requests.query(request) if request.method != "POST" else await _fields(request)
        following = _local(fields.get("next", "/"))
        if await self._is_open():
            return RedirectResponse(following, status_code=303, headers=HEADERS)
        if request.method != "POST":
            return _sign_in_page(following)
        key = fields.get("key", "").strip()
        try:
            await self._door.access.identify(key)
        except Unauthorized:
            return _sign_in_page(following, "This key is unknown, revoked or expired.", status=401)
        response = RedirectResponse(following, status_code=303, headers=HEADERS)
        response.set_cookie(COOKIE, key, httponly=True, samesite="strict", secure=_is_secure(request))
        return response

    async def _is_open(self) -> bool:
        """Whether callers need no key."""
        try:
            await self._door.access.identify(None)
        except Unauthorized:
            return False
        return True

    async def _sign_out(self, request: Request) -> Response:
        await self._form(request)
        response = RedirectResponse(SIGN_IN, status_code=303, headers=HEADERS)
        response.delete_cookie(COOKIE, httponly=True, samesite="strict", secure=_is_secure(request))
        return response

    def _answer(self, show: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        """The endpoint of a page. An error is answered as a page, or as a message if htmx requested a fragment."""

        async def answer(request: Request) -> Response:
            try:
                return await show(request)
            except RecallogError as error:
                return _problem(request, error)
            except Exception as error:  # noqa: BLE001  # it is logged as a defect, and told
                return _problem(request, logs.defect(error, request.state.request))

        return answer


async def _unknown(request: Request) -> Response:
    raise OutOfRange(f"there is no page {request.url.path}", path="path")


async def _fields(request: Request) -> Mapping[str, str]:
    """The fields of a form of a page of this server. Raises `RequestError`."""
    Names.of(request.scope["headers"]).check_same_origin()
    body = await requests.body(request, FORM)
    try:
        found = parse_qs(body.decode(), keep_blank_values=True)
    except ValueError:
        raise InvalidArgument("the form is not valid text", rule="unparsable") from None
    return {name: texts[-1] for name, texts in found.items()}


def _text(name: str, value: str) -> str:
    """The value of an argument. Raises `InvalidArgument` for bytes that are not valid text."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidArgument(f"{name}: should be valid text", path=name, rule="text") from None
    return value


def _local(url: str) -> str:
    """The URL if it belongs to the console; else the URL of the start page."""
    is_page = url.startswith((f"{ROOT}/", f"{ROOT}?")) or url == "/"
    return url if is_page and url.isascii() and url.isprintable() and "\\" not in url else "/"


def _is_secure(request: Request) -> bool:
    """Whether the browser's connection, to this server or to a proxy, is encrypted: the origin says so."""
    return "https" in (request.url.scheme, Names.of(request.scope["headers"]).scheme)


def _sign_in_page(following: str, problem: str = "", status: int = 200) -> Response:
    text = (
        rendering.environment()
        .get_template("sign_in.html")
        .render(title="Sign in", following=following, problem=problem)
    )
    return HTMLResponse(text, status_code=status, headers=HEADERS)


def _problem(request: Request, error: RecallogError) -> Response:
    """The page of an error. A page that the caller may not see and a page that does not exist get the same answer."""
    status = status_of(error)
    is_part = request.headers.get("hx-request") == "true"
    if isinstance(error, Unauthorized) and not is_part:
        here = "/" if request.method == "POST" else f"{request.url.path}?{request.url.query}".removesuffix("?")
        if COOKIE not in request.cookies:
            address = SIGN_IN if here == "/" else f"{SIGN_IN}?next={quote(here, safe='/')}"
            return RedirectResponse(address, status_code=303, headers=HEADERS)
        return _sign_in_page(_local(here), "Your key was revoked or has expired. Sign in again.", status=401)
    is_unknown = isinstance(error, Forbidden | OutOfRange)
    text = (
        rendering.environment()
        .get_template("problem_part.html" if is_part else "problem.html")
        .render(
            title="Not found" if is_unknown else HTTPStatus(status).phrase,
            status=status,
            message="" if is_unknown else str(error),
            retryable=error.retryable,
        )
    )
    headers = dict(HEADERS)
    wait_seconds = getattr(error, "retry_after_seconds", None)
    if wait_seconds is not None or error.retryable:
        headers["Retry-After"] = str(max(1, round(wait_seconds or 1)))
    return HTMLResponse(text, status_code=status, headers=headers)


def _file(name: str) -> Callable[[Request], Awaitable[Response]]:
    """A static file, which needs no key. Its URL contains a digest of its content."""
    content, kind = (STATIC / name).read_bytes(), _TYPES[(STATIC / name).suffix]

    async def show(request: Request) -> Response:
        return Response(content, media_type=kind, headers={"Cache-Control": _YEAR})

    return show
