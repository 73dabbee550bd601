"""Jobs: long work that continues after the response, and its progress."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Literal

import uuid_utils
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as Endpoint

from recallog.operations import routes
from recallog.operations.operation import Operation
from recallog_projections.concurrency import cancel_all
from recallog_schemas.errors import Forbidden, RateLimited, RecallogError, UnknownOutcome
from recallog_service.access import Caller
from recallog_service.http import requests, sse
from recallog_service.http.door import Door, HttpClient
from recallog_service.http.problems import problem_of
from recallog_service.logs import defect

JOBS_KEPT = 100
"""Number of finished jobs that are remembered, newest first."""
JOBS_RUNNING_MAX = 8


class Job(BaseModel):
    """Work that a caller has started. It ends with the server; it can always be started again."""

    id: str
    operation: str
    """The qualified name of the operation."""
    state: Literal["running", "done", "failed"] = "running"
    done: int = 0
    """Work done so far, in the unit of the operation."""
    total: int = 0
    """Total work; equal to `done` while it is unknown."""
    answer: Any = None
    """The answer of the operation once it has finished; else null."""
    problem: dict[str, Any] | None = None
    """Why it failed, as a problem document; else null."""


class JobsPage(BaseModel):
    """The jobs of one server that a caller may see."""

    items: list[Job]
    """The running jobs and the last finished ones, newest first. `answer` is null here; the path of a job has it."""


class Jobs:
    """The jobs of one server."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._jobs: dict[str, tuple[Job, Caller]] = {}
        """Each job with its initiator, by id."""
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()
        """Set, and then replaced, whenever a job changes."""

    @property
    def running(self) -> int:
        """Number of running jobs."""
        return len(self._tasks)

    def endpoints(self) -> Sequence[Endpoint]:
        """The endpoints that list jobs and show one."""
        return [
            Endpoint(routes.JOBS, self._list, methods=["GET"], name="jobs"),
            Endpoint(f"{routes.JOBS}/{{id}}", self._show, methods=["GET"], name="job"),
        ]

    async def begin(self, client: HttpClient, operation: Operation, given: Mapping[str, Any]) -> Response:
        """Start an operation as a job: 202 with the job."""
        job = self.start(client, operation, given)
        path = f"{routes.JOBS}/{job.id}"
        return Response(job.model_dump_json(), status_code=202, headers={"Location": path}, media_type=requests.JSON)

    def start(self, client: HttpClient, operation: Operation, given: Mapping[str, Any]) -> Job:
        """Check the arguments and start an operation as a job."""
        client.memory.admit(operation, given)
        if self.running >= JOBS_RUNNING_MAX:
            raise RateLimited(f"{self.running} jobs are running; wait until one has ended", retry_after_seconds=5)
        job = Job(id=str(uuid_utils.uuid7()), operation=operation.qualified_name)
        self._jobs[job.id] = job, client.caller
        self._forget_old()
        self._tasks[job.id] = asyncio.create_task(self._work(job, client, operation, given), name=f"job {job.id}")
        return job

    def seen_by(self, client: HttpClient) -> list[Job]:
        """The jobs that a caller may see, newest first."""
        return [job for job, beginner in reversed(self._jobs.values()) if _is_shown_to(client, beginner)]

    def find(self, client: HttpClient, job_id: str) -> Job:
        """The job with an id. Raises `Forbidden` for a job that is unknown or that the caller may not see."""
        job, beginner = self._jobs.get(job_id, (None, None))
        if not _is_shown_to(client, beginner):
            raise Forbidden
        if job is None:
            raise Forbidden("this server does not have this job: only the server that started it does, until it ends")
        return job

    async def close(self) -> None:
        """Cancel the running jobs."""
        await cancel_all(*self._tasks.values())

    async def _work(self, job: Job, client: HttpClient, operation: Operation, given: Mapping[str, Any]) -> None:
        loop = asyncio.get_running_loop()

        def progress(done: int, total: int) -> None:
            job.done, job.total = done, total
            loop.call_soon_threadsafe(self._notify)

        try:
            answer = await client.memory.call(operation, given, **dict.fromkeys(operation.callbacks, progress))
            job.answer, job.state = json.loads(operation.to_json(answer)), "done"
        except RecallogError as error:
            job.problem, job.state = problem_of(error), "failed"
        except asyncio.CancelledError:
            stopped = UnknownOutcome(f"the server ended during {job.operation}; start it again")
            job.problem, job.state = problem_of(stopped), "failed"
            raise
        except Exception as error:  # noqa: BLE001 - a defect: it is logged, and the job has failed
            job.problem, job.state = problem_of(defect(error, job.id)), "failed"
        finally:
            del self._tasks[job.id]
            self._notify()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _forget_old(self) -> None:
        finished = [job.id for job, _ in self._jobs.values() if job.state != "running"]
        for old in finished[:-JOBS_KEPT]:
            del self._jobs[old]

    async def _list(self, request: Request) -> Response:
        """The jobs that a caller may see, newest first."""
        seen = self.seen_by(await self._door.client(request))
        items = [job.model_copy(update={"answer": None}) for job in seen]
        return Response(JobsPage(items=items).model_dump_json(), media_type=requests.JSON)

    async def _show(self, request: Request) -> Response:
        """A job; with `Accept: text/event-stream`, its progress as a stream."""
        client = await self._door.client(request)
        job = self.find(client, request.path_params["id"])
        if requests.accepts(request, sse.MEDIA_TYPE):
            return sse.EventStream(self._door.while_allowed(request, client, self._progress(job)))
        return Response(job.model_dump_json(), media_type=requests.JSON)

    async def _progress(self, job: Job) -> AsyncGenerator[bytes]:
        """The job after each change, until it has ended."""
        shown = ""
        while True:
            now = job.model_dump_json()
            if now != shown:
                shown = now
                yield sse.make_frame(now.encode(), event="progress" if job.state == "running" else job.state)
            if job.state != "running":
                return
            try:
                async with asyncio.timeout(sse.HEARTBEAT_SECONDS):
                    await self._changed.wait()
            except TimeoutError:
                yield sse.HEARTBEAT


def _is_shown_to(client: HttpClient, beginner: Caller | None) -> bool:
    """Whether a client may see the job of a caller: its own jobs, and all jobs as an operator of all spaces."""
    return client.caller == beginner or client.caller.grant.is_of_operators
