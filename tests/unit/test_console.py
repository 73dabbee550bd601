"""The console's skeleton: sign-in, forgery, headers, static files, errors, and what a key may not see."""

import hashlib
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from recallog import Memory
from recallog_schemas.invented_times import INVENTED_FROM
from recallog_service.access.key_file import KeyFile
from recallog_service.console import forgery, rendering
from recallog_service.console.app import COOKIE
from recallog_service.console.page import ROOT, pages_of_models
from recallog_service.console.pages import PAGES
from recallog_service.http.door import Limits
from support.console import BAKER, OPERATOR, READER, Browser, Page, key_in
from support.events import event, one_loop, run

pytestmark = pytest.mark.models("all")

HTMX_VERSION = "2.0.11"
HTMX_SHA256 = "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717"
OVEN = {"text": "The oven is hot."}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    opened = Memory.open(tmp_path)
    with one_loop():
        run(opened.publish_many([event(payload=OVEN), event(space="castle", agent="king")]))
        yield opened
        run(opened.close())


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Memory]:
    opened = Memory.open(tmp_path / "empty")
    with one_loop():
        yield opened
        run(opened.close())


def signed_in(memory: Memory, home: Path, grant: Any, **options: Any) -> Browser:
    key = key_in(home, grant, **options)
    browser = Browser(memory, home)
    assert browser.sign_in(key).status_code == 303
    return browser


# Sign-in


def test_without_keys_the_console_is_open_on_this_machine(memory: Memory, tmp_path: Path) -> None:
    page = Browser(memory, tmp_path).page("/")
    assert "village" in page.text
    assert "Sign out" not in page.text


def test_with_keys_a_page_leads_to_the_sign_in_and_back(memory: Memory, tmp_path: Path) -> None:
    key, browser = key_in(tmp_path, OPERATOR), Browser(memory, tmp_path)
    asked = browser.get("/console/space?space=village")
    assert asked.status_code == 303
    assert asked.headers["location"] == "/console/sign-in?next=/console/space%3Fspace%3Dvillage"
    following = browser.page(asked.headers["location"]).fields["next"]
    answer = browser.sign_in(key, following)
    assert answer.headers["location"] == "/console/space?space=village"
    assert "village" in browser.page(following).text


def test_the_cookie_is_for_this_server_alone_and_no_script_reads_it(memory: Memory, tmp_path: Path) -> None:
    key = key_in(tmp_path, OPERATOR)
    flags = Browser(memory, tmp_path).sign_in(key).headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(flags.split("; "))
    assert "Secure" not in flags
    assert "Secure" in Browser(memory, tmp_path, "https://memory.example").sign_in(key).headers["set-cookie"]


def test_behind_a_proxy_that_ends_tls_the_cookie_is_secure(memory: Memory, tmp_path: Path) -> None:
    key, browser = key_in(tmp_path, OPERATOR), Browser(memory, tmp_path, "http://memory.example")
    answer = browser.post("/console/sign-in", origin="https://memory.example", key=key)
    assert "Secure" in answer.headers["set-cookie"]


@pytest.mark.parametrize("key", ["", "rl_0000_wrong", "no key", "\x00", "ü" * 5_000])
def test_a_wrong_key_is_refused_and_never_shown(memory: Memory, tmp_path: Path, key: str) -> None:
    key_in(tmp_path, OPERATOR)
    answer = Browser(memory, tmp_path).sign_in(key)
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers
    assert "unknown, revoked or expired" in answer.text
    assert not key or key not in answer.text


def test_a_revoked_key_is_signed_out_at_once(memory: Memory, tmp_path: Path) -> None:
    browser = signed_in(memory, tmp_path, OPERATOR)
    (stored,) = run(KeyFile(tmp_path).all())
    run(KeyFile(tmp_path).revoke(stored.id))
    answer = browser.get("/")
    assert answer.status_code == 401
    assert "village" not in answer.text


def test_signing_out_forgets_the_key(memory: Memory, tmp_path: Path) -> None:
    browser = signed_in(memory, tmp_path, OPERATOR)
    token = browser.page("/").fields[forgery.FIELD]
    assert browser.post("/console/sign-out", csrf=token).status_code == 303
    assert COOKIE not in browser.client.cookies
    assert browser.get("/").status_code == 303


@pytest.mark.parametrize(
    "url", ["//evil.example", "https://evil.example", "/\\evil.example", "/v1/status", "/console/\n"]
)
def test_signing_in_leads_to_pages_of_the_console_alone(memory: Memory, tmp_path: Path, url: str) -> None:
    key = key_in(tmp_path, OPERATOR)
    assert Browser(memory, tmp_path).sign_in(key, url).headers["location"] == "/"


def test_the_api_does_not_take_the_cookie(memory: Memory, tmp_path: Path) -> None:
    assert signed_in(memory, tmp_path, OPERATOR).get("/v1/spaces").status_code == 401


# Forgery


@pytest.mark.parametrize("whose", ["nobody", "rl_another_key", None])
def test_a_form_without_the_token_of_its_caller_is_refused(memory: Memory, tmp_path: Path, whose: str | None) -> None:
    token = "" if whose == "nobody" else forgery.token_for(whose)
    answer = signed_in(memory, tmp_path, OPERATOR).post("/console/sign-out", csrf=token)
    assert answer.status_code == 403
    assert "load the page again" in answer.text


@pytest.mark.parametrize("path", ["/console/sign-in", "/console/sign-out"])
@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:9"])
def test_a_form_of_another_site_is_refused(memory: Memory, tmp_path: Path, path: str, origin: str) -> None:
    key = key_in(tmp_path, OPERATOR)
    assert Browser(memory, tmp_path).post(path, origin=origin, key=key).status_code == 403


def test_without_keys_other_names_of_the_server_are_refused(memory: Memory, tmp_path: Path) -> None:
    browser = Browser(memory, tmp_path, "http://rebound.example", hosts=["127.0.0.1", "localhost"])
    assert browser.get("/").status_code == 421


# What each page has


def test_every_page_is_guarded_by_a_policy_and_has_no_inline_script_or_style(memory: Memory, tmp_path: Path) -> None:
    browser = Browser(memory, tmp_path)
    for page in [*PAGES, *pages_of_models()]:
        if not page.acts:
            browser.get(f"{page.url}?space=village&agent=baker")  # which checks it
    for path in ("/console/sign-in", "/console/nowhere", "/console"):
        browser.get(path)


def test_pages_may_be_framed_by_nobody_and_name_themselves_to_nobody_else(memory: Memory, tmp_path: Path) -> None:
    headers = Browser(memory, tmp_path).get("/").headers
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["referrer-policy"] == "same-origin"
    assert headers["x-content-type-options"] == "nosniff"


def test_static_files_need_no_key_and_are_kept_for_a_year(memory: Memory, tmp_path: Path) -> None:
    key_in(tmp_path, OPERATOR)
    browser = Browser(memory, tmp_path)
    for name in ("console.css", "console.js", "htmx.min.js", "mark.svg"):
        answer = browser.get(rendering.static_url(name))
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]


def test_htmx_is_the_file_that_was_released() -> None:
    content = (rendering.STATIC / "htmx.min.js").read_bytes()
    assert hashlib.sha256(content).hexdigest() == HTMX_SHA256
    assert f'version:"{HTMX_VERSION}"'.encode() in content
    assert "Zero-Clause BSD" in (rendering.STATIC / "htmx.LICENSE").read_text()


def test_nothing_of_the_console_names_another_host() -> None:
    own = [each for each in rendering.STATIC.parent.rglob("*") if each.suffix in (".html", ".css", ".js", ".svg")]
    for path in own:
        text = path.read_text()
        if path.name != "htmx.min.js":
            assert set(re.findall(r"https?://[\w.]+", text)) <= {"http://www.w3.org"}, path


def test_paths_of_pages_begin_alike() -> None:
    assert {page.url for page in PAGES if not page.url.startswith(f"{ROOT}/")} == {"/"}


# What a key may not see


def test_a_key_of_one_space_learns_of_no_other(memory: Memory, tmp_path: Path) -> None:
    browser = signed_in(memory, tmp_path, READER)
    start = browser.get("/").text
    assert "village" in start
    assert "castle" not in start
    hidden, unknown = (browser.get(f"/console/space?space={name}") for name in ("castle", "cellar"))
    assert hidden.status_code == unknown.status_code == 404
    assert hidden.text == unknown.text


def test_a_key_of_one_agent_sees_its_spaces_and_itself(memory: Memory, tmp_path: Path) -> None:
    start = signed_in(memory, tmp_path, BAKER).get("/").text
    assert "village" in start
    assert "baker" in start
    assert "king" not in start


def test_only_operators_see_the_state_of_the_memory(memory: Memory, tmp_path: Path) -> None:
    assert "ledger" not in signed_in(memory, tmp_path, READER).page("/").text
    assert "ledger" in signed_in(memory, tmp_path, OPERATOR).page("/").text


# Errors


@pytest.mark.parametrize("path", ["/console/nowhere", "/console", "/console/space", "/console/space?space=cellar"])
def test_what_is_not_there_has_a_page(memory: Memory, tmp_path: Path, path: str) -> None:
    answer = Browser(memory, tmp_path).get(path)
    assert answer.status_code == 404
    assert "There is no such page, or your key may not see what it shows." in Page(answer.text).text


def test_a_part_that_fails_is_a_message_in_its_place(memory: Memory, tmp_path: Path) -> None:
    answer = Browser(memory, tmp_path).get("/console/space?space=cellar", HX_Request="true")
    assert answer.status_code == 404
    assert answer.text.startswith('<p class="problem" role="alert">')


def test_a_part_for_a_revoked_key_says_where_to_sign_in(memory: Memory, tmp_path: Path) -> None:
    key_in(tmp_path, OPERATOR)
    answer = Browser(memory, tmp_path).get("/", HX_Request="true")
    assert answer.status_code == 401
    assert "/console/sign-in" in answer.text
    assert "<html" not in answer.text


def test_a_defect_has_a_page_without_a_traceback(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendering, "url", None)
    monkeypatch.setitem(rendering.environment().globals, "url", None)
    answer = Browser(memory, tmp_path).get("/")
    assert answer.status_code == 500
    assert "a defect of the server, logged as" in answer.text
    assert "Traceback" not in answer.text
    assert "TypeError" not in answer.text


def test_a_memory_that_cannot_answer_has_a_page_that_says_what_to_do(memory: Memory, tmp_path: Path) -> None:
    answer = Browser(memory, tmp_path, limits=Limits(answer_seconds=0)).get("/")
    assert answer.status_code == 503
    assert "try again" in answer.text
    assert "retry-after" in answer.headers


def test_a_page_counts_one_call_of_a_key(memory: Memory, tmp_path: Path) -> None:
    browser = signed_in(memory, tmp_path, READER, calls_per_minute=2)
    assert [browser.get("/").status_code for _ in range(3)] == [200, 200, 429]
    assert "retry-after" in browser.get("/").headers


# The start page


def test_an_empty_memory_shows_the_three_ways_to_put_something_in(empty: Memory, tmp_path: Path) -> None:
    text = Browser(empty, tmp_path / "empty").page("/").text
    for command in ("recallog publish", "recallog ingest", "recallog install"):
        assert command in text


def test_the_start_page_shows_the_command_that_answers_the_same(memory: Memory, tmp_path: Path) -> None:
    assert "recallog status" in Browser(memory, tmp_path).page("/").text


def test_an_address_has_its_arguments_once_escaped() -> None:
    address = rendering.url("/space", {"space": "a&b", "before": "0:1"}, before=None, kind="x.y", session="")
    assert address == "/console/space?space=a%26b&kind=x.y"
    template = rendering.environment().from_string('<a href="{{ url("/agent", space="a", agent="b") }}">')
    assert template.render() == '<a href="/console/agent?space=a&amp;agent=b">'


@pytest.mark.parametrize(
    ("passed", "shown"),
    [
        (timedelta(minutes=5), "5 min ago"),
        (timedelta(days=-2, hours=-1), "in 2 d"),
        (timedelta(days=364), "364 d ago"),
    ],
)
def test_a_time_is_shown_as_how_long_ago_it_was(passed: timedelta, shown: str) -> None:
    assert rendering.ago(datetime.now(UTC) - passed) == shown


def test_a_time_of_years_ago_is_shown_as_its_date() -> None:
    assert rendering.ago(datetime(2019, 5, 7, tzinfo=UTC)) == "2019-05-07"


def test_a_time_that_ingest_has_invented_is_unknown() -> None:
    assert rendering.ago(INVENTED_FROM) == "time unknown"
