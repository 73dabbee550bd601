"""The page Operations of the console: dead letters and their causes, progress, long work as jobs, and plots."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recallog import Memory
from recallog.extending import MemoryLedger, MemoryStore, assemble
from recallog_service.console.pages.operations import ACTIONS, REMEDIES
from recallog_service.console.visit import OPERATIONS
from support.console import OPERATOR, READER, Browser, Page, key_in
from support.events import event, one_loop, run

pytestmark = pytest.mark.models("all")

FIRST = event(id="debt-1", payload={"text": "nine sacks"})
OTHER = FIRST.model_copy(update={"payload": {"text": "ten sacks"}})
HOSTILE = b"\xff<script>alert(1)</script> {{7*7}} \x1b[31m \xe2\x80\xae"
PAGE = "/console/operations"


@pytest.fixture
def memory() -> Iterator[Memory]:
    """A memory with a conflict and with bytes that are not an event."""
    ledger = MemoryLedger(unique_ids=False)
    opened = Memory(assemble(ledger, lambda namespace: MemoryStore()))
    with one_loop():
        run(opened.publish_many([event(id="e-0"), FIRST, OTHER]))
        ledger.append_bytes(HOSTILE, "village")
        run(opened.admin.dead_letters())
        yield opened
        run(opened.close())


@pytest.fixture
def browser(memory: Memory, tmp_path: Path) -> Browser:
    return Browser(memory, tmp_path)


def token_of(page: Page) -> str:
    return page.fields["csrf"]


def begin(browser: Browser, action: str, **fields: str) -> str:
    """The URL of the job that a button has begun."""
    token = token_of(browser.page("/console/operations/plan?action=rebuild+views"))
    answer = browser.post("/console/operations/begin", csrf=token, action=action, **fields)
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


def ended(browser: Browser, job: str) -> Page:
    """The page of a job once it has ended."""
    until = time.monotonic() + 60
    while True:
        page = browser.page(job)
        if "running" not in page.text:
            return page
        assert time.monotonic() < until
        run(_turn())


async def _turn() -> None:
    import asyncio

    await asyncio.sleep(0.01)


def test_the_cause_of_a_dead_letter_is_at_most_five_clicks_from_the_start_page(browser: Browser) -> None:
    page, clicks = browser.page("/"), 0
    for wanted in (r"/console/operations#dead-letters", r"/console/operations/dead-letter\?position=0%3A2"):
        (link,) = {each for each in page.links if re.fullmatch(wanted, each)}
        page, clicks = browser.page(link.partition("#")[0]), clicks + 1
    assert clicks <= 5
    assert "its id names another event, at 0:1" in page.text
    assert "payload.text" in page.text
    assert "nine sacks" in page.text
    assert "ten sacks" in page.text


def test_the_lines_in_which_a_conflict_differs_are_marked(browser: Browser) -> None:
    text = browser.get(f"{PAGE}/dead-letter?position=0:2").text
    marked = re.findall(r"<mark>(.*?)</mark>", text)
    assert [line.strip() for line in marked] == [
        "&#34;text&#34;: &#34;nine sacks&#34;",
        "&#34;text&#34;: &#34;ten sacks&#34;",
    ]


def test_a_record_that_is_not_an_event_is_shown_as_text(browser: Browser) -> None:
    text = browser.get(f"{PAGE}/dead-letter?position=0:3").text
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt; {{7*7}}" in text
    assert "\x1b" not in text
    assert REMEDIES["unparsable"] in text


def test_a_position_without_a_dead_letter_is_not_found(browser: Browser) -> None:
    assert browser.get(f"{PAGE}/dead-letter?position=0:0").status_code == 404


def test_the_page_shows_progress_dead_letters_and_plots(browser: Browser) -> None:
    page = browser.page(PAGE)
    assert "4 of 4" in page.text
    assert page.text.count("conflict") == 1
    assert "Events a minute" in page.text
    assert "Nobody has recalled anything" in page.text
    assert "Disk" in page.text


def test_the_latency_of_recalls_is_shown_once_there_are_some(browser: Browser, memory: Memory) -> None:
    for _ in range(3):
        run(browser.client.post("/v1/spaces/village/agents/baker/recall", json={"query": "sacks"}))
    assert re.search(r"Recall latency, p95 [\d.]+ ms", browser.page(PAGE).text)


def test_a_rebuild_is_shown_as_a_dry_run_first(browser: Browser) -> None:
    page = browser.page(f"{PAGE}/plan?action=rebuild+views")
    assert "Records to fold" in page.text
    assert run(browser.app._door.memory.admin.plan_rebuild()).items[0].views in page.text
    assert browser.app._jobs.running == 0


def test_verifying_is_a_job_whose_answer_is_shown(browser: Browser) -> None:
    page = ended(browser, begin(browser, "verify"))
    assert "done" in page.text
    assert "records" in page.text


def test_a_rebuild_is_a_job_whose_answer_is_shown(browser: Browser) -> None:
    assert "rebuilt 4 records" in ended(browser, begin(browser, "rebuild views")).text


def test_a_job_that_runs_is_asked_for_again_and_one_that_has_ended_is_not(browser: Browser) -> None:
    job = begin(browser, "verify")
    first = browser.get(job, hx_request="true").text
    assert ('hx-trigger="every 1s"' in first) is ("running" in first)
    ended(browser, job)
    assert "hx-trigger" not in browser.get(job, hx_request="true").text


def test_a_retry_that_cannot_help_rebuilds_nothing(browser: Browser) -> None:
    assert "0 of 2 applied" in ended(browser, begin(browser, "retry")).text


def test_an_action_of_another_site_or_without_a_token_does_nothing(browser: Browser) -> None:
    token = token_of(browser.page(f"{PAGE}/plan?action=rebuild+views"))
    begun = "/console/operations/begin"
    assert browser.post(begun, action="verify").status_code == 403
    assert browser.post(begun, origin="http://evil.example", csrf=token, action="verify").status_code == 403
    assert browser.get(begun + "?action=verify").status_code in (404, 405)
    assert browser.app._jobs.seen_by is not None
    assert browser.app._jobs.running == 0


def test_an_unknown_action_is_not_found(browser: Browser) -> None:
    assert browser.get(f"{PAGE}/plan?action=copy").status_code == 404


def test_a_reader_has_no_page_of_operations(memory: Memory, tmp_path: Path) -> None:
    key = key_in(tmp_path, READER)
    browser = Browser(memory, tmp_path)
    browser.sign_in(key)
    for path in (PAGE, f"{PAGE}/dead-letter?position=0:2", f"{PAGE}/plan?action=rebuild+views", f"{PAGE}/job?id=x"):
        assert browser.get(path).status_code == 404, path
    assert PAGE not in browser.page("/").links


def test_an_operator_has_one(memory: Memory, tmp_path: Path) -> None:
    key = key_in(tmp_path, OPERATOR)
    browser = Browser(memory, tmp_path)
    browser.sign_in(key)
    assert browser.get(PAGE).status_code == 200
    assert PAGE in browser.page("/").links


@pytest.mark.parametrize("action", ACTIONS)
def test_every_action_names_an_operation_and_its_arguments(action: str) -> None:
    operation, arguments = ACTIONS[action]
    given: dict[str, Any] = {"model": "minilm"} if action == "reindex" else {}
    OPERATIONS[operation].validate({**arguments, **given}, strict=True)
