"""Operations: the progress of the views, dead letters and their causes, long work with its progress, and plots."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import copy
from statistics import quantiles
from typing import Any

from starlette.responses import Response

from recallog_schemas.errors import OutOfRange
from recallog_schemas.views import View
from recallog_service.console.page import Page
from recallog_service.console.rendering import url
from recallog_service.console.visit import OPERATIONS, Visit
from recallog_service.http.jobs import Job

LETTERS = 25
"""Number of dead letters per page."""
MINUTES = 60
CONTENT_CHARS = 16_384
"""Number of characters of a record that are shown."""

REMEDIES: Mapping[str, str] = {
    "conflict": "Two different events have one id, and the first one counts. If the second one is to count too, "
    "publish it again with an id of its own.",
    "future_schema": "A newer version of Recallog has written it. Upgrade this one, then retry.",
    "invalid": "The record breaks a rule of its kind. Correct what publishes it, and publish a correct event.",
    "key_missing": "The store of keys lacks the key of this sealed record. Put the keys back, then retry.",
    "projection_failed": "A projection of your own has raised an error. Correct it, then retry.",
    "too_large": "Publish it in parts.",
    "unparsable": "The bytes are not an event. Find the program that writes them.",
    "wrong_key": "The key of the record must be the space of its event. Correct the program that writes it.",
    "wrong_partition": "The record is not in the partition of its space. Correct the partitioner of the program that "
    "writes it.",
}
"""What to do, by the reason of a dead letter."""

ACTIONS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "verify": ("admin.verify", {}),
    "rebuild views": ("admin.rebuild", {"what": "views"}),
    "rebuild index": ("admin.rebuild", {"what": "index"}),
    "reindex": ("admin.reindex", {}),
    "retry": ("admin.retry_dead_letters", {}),
    "abort views": ("admin.abort_rebuild", {"what": "views"}),
    "abort index": ("admin.abort_rebuild", {"what": "index"}),
}
"""The operation and arguments of each button, by name."""


async def operations(visit: Visit) -> Response:
    """The state of a memory, and actions of operators."""
    letters = await visit.ask("admin.dead_letters", limit=LETTERS, cursor=visit.given.get("cursor"))
    status = await visit.ask("admin.status")  # after the dead letters: in a folder, listing them folds new records
    return await visit.page(
        "operations.html",
        title="Operations",
        command=("admin.status", {}),
        status=status,
        letters=letters,
        jobs=visit.jobs.seen_by(visit.client),
        activity=await visit.ask("admin.activity", minutes=MINUTES),
        latencies=_latencies(visit),
    )


async def dead_letter(visit: Visit) -> Response:
    """A dead letter, its cause, and what to do; for a conflict, both events."""
    position = visit.text("position")
    detail = await visit.ask("admin.dead_letter", position=position)
    record, first = _lines(detail.content), _lines(detail.first.content) if detail.first else ()
    return await visit.page(
        "dead_letter.html",
        title=f"Dead letter {position}",
        command=("admin.dead_letter", {"position": position}),
        detail=detail,
        record=_mark_lines(record, first) if first else [(line, False) for line in record],
        first=_mark_lines(first, record),
        remedy=REMEDIES.get(detail.letter.reason, ""),
    )


async def plan(visit: Visit) -> Response:
    """What a rebuild would do, before it starts."""
    action, operation, arguments = _action(visit)
    what = arguments.get("what", "index")
    return await visit.page(
        "plan.html",
        title=action.capitalize(),
        command=("admin.plan_rebuild", {"what": what}),
        action=action,
        plans=await visit.ask("admin.plan_rebuild", what=what),
        allowed=visit.may(operation, **arguments),
        arguments=arguments,
    )


async def begin(visit: Visit) -> Response:
    """Start long work, and show its progress."""
    _, operation, arguments = _action(visit)
    job = visit.jobs.start(visit.client, OPERATIONS[operation], arguments)
    return visit.redirect(url("/operations/job", id=job.id))


async def job(visit: Visit) -> Response:
    """A job: its progress, and its answer as the command line prints it."""
    # A copy: a thread renders the page, and a job that ends meanwhile would be shown as done without its answer.
    found = copy(visit.jobs.find(visit.client, visit.text("id")))
    shown: dict[str, Any] = {"job": found, "answer": _answer(found)}
    if visit.is_part:
        return await visit.fragment("job_part.html", **shown)
    return await visit.page("job.html", title=found.operation, **shown)


def _action(visit: Visit) -> tuple[str, str, Mapping[str, Any]]:
    """The name of an action, its operation, and the operation's arguments."""
    name = visit.text("action")
    if name not in ACTIONS:
        raise OutOfRange(f"there is no action {name}", path="action")
    operation, fixed = ACTIONS[name]
    known = OPERATIONS[operation].parameters
    given = {each: visit.given[each] for each in ("model", "accept") if each in known and each in visit.given}
    return name, operation, {**given, **fixed}


def _answer(found: Job) -> View | None:
    """The answer of a job, once it has one."""
    if found.answer is None:
        return None
    view: View = OPERATIONS[found.operation].answer.model_validate(found.answer)
    return view


def _lines(content: str) -> Sequence[str]:
    """The lines of a record; of indented JSON if the record is JSON."""
    content = content[:CONTENT_CHARS]
    with suppress(ValueError, RecursionError):
        content = json.dumps(json.loads(content), ensure_ascii=False, indent=2)
    return content.splitlines()


def _mark_lines(lines: Sequence[str], others: Sequence[str]) -> Sequence[tuple[str, bool]]:
    """Lines, each with True if it is missing from the others."""
    known = set(others)
    return [(line, line not in known) for line in lines]


def _latencies(visit: Visit) -> Mapping[str, Any]:
    """The durations of the last recalls of this server, in milliseconds."""
    taken: Sequence[float] = [1_000 * each for each in visit.door.seconds.get("recall", ())]
    p95 = quantiles(taken, n=20)[-1] if len(taken) > 1 else max(taken, default=0.0)
    return {"taken": taken, "p95": p95}


PAGES = (
    Page("/operations", operations, "Operations", needs="admin.status", key="g o"),
    Page("/operations/dead-letter", dead_letter),
    Page("/operations/plan", plan),
    Page("/operations/begin", begin, acts=True),
    Page("/operations/job", job),
)
