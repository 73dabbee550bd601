"""Clients of the index service of a folder: one call to it."""

import asyncio
import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from recallog import layout
from recallog.index import messages
from recallog_projections.breaker import Attempt, Breaker
from recallog_projections.concurrency import cancel_all
from recallog_schemas import limits
from recallog_schemas.errors import IndexUnavailable

WORKING_SECONDS = 0.25
"""How often a service reports that it executes a call."""
PATIENCE_SECONDS = 60.0
"""How long a patient call waits for a process that computes and does not send messages."""

_breakers: dict[Path, Breaker] = {}
"""By folder. A service that does not respond costs one deadline, whichever part of this process uses it."""


class ServiceAbsent(IndexUnavailable):
    """No process serves the index, or the one that did ended before it answered."""


class ServiceSilent(IndexUnavailable):
    """The process that serves the index does not respond."""


async def call(
    home: Path,
    message: messages.Call,
    progress: Callable[[int, int], None] | None = None,
    deadline_seconds: float = limits.DEADLINE_SECONDS,
    *,
    patient: bool = False,
) -> bytes:
    """The result of one call to the service of a folder, as JSON.

    `progress` is called with (done, total) while the call is executed. Raises the error that the call raised,
    `ServiceAbsent`, or `ServiceSilent` if the service does not respond for `deadline_seconds`, and then at once for
    some seconds. A `patient` call is always made, and continues while the process of an unresponsive service computes.
    """
    breaker = _breaker(home) if patient else _breakers.get(home) or _breakers.setdefault(home, _breaker(home))
    attempt: Attempt | None = None
    try:
        async with breaker.attempt(deadline_seconds) as attempt:
            try:
                answer = await _call_service(home, message, progress, attempt, patient)
            except (OSError, EOFError, msgspec.MsgspecError) as error:
                raise ServiceAbsent(
                    f"the index of {home} is not being served ({error}); the next query starts it"
                ) from error
        if patient:  # when the service answers again, calls that are not patient use it at once
            _breakers.pop(home, None)
        return answer
    except ServiceSilent:
        if attempt is not None and attempt.silent and await asyncio.to_thread(_remove_stale_address, home):
            _breakers.pop(home, None)
        raise


async def read_health(
    home: Path, deadline_seconds: float, *, embedder: str | None = None, patient: bool = False
) -> messages.HealthReport | None:
    """Whether the index of a folder follows the ledger; None if no service answers. Raises `ServiceSilent`.

    The address file does not prove that a service runs: a killed process leaves it behind.
    """
    try:
        data = await call(home, messages.Health(embedder), deadline_seconds=deadline_seconds, patient=patient)
    except ServiceAbsent:
        return None
    return msgspec.json.decode(data, type=messages.HealthReport)


def _breaker(home: Path) -> Breaker:
    return Breaker(
        lambda reason: ServiceSilent(
            f"the process that serves the index of {home} {reason}. See {_whom(home)}, and {home / layout.INDEX_LOG}"
        ),
        failures=(),
    )


def _whom(home: Path) -> str:
    """The process that serves a folder, in words, with the way to continue it."""
    try:
        pid = read_address(home).pid
    except (OSError, msgspec.MsgspecError):
        return f"who holds {home / layout.INDEX_LOCK}"
    return f"process {pid}, which `kill -CONT {pid}` continues if it is stopped"


async def _call_service(
    home: Path, message: messages.Call, progress: Callable[[int, int], None] | None, attempt: Attempt, patient: bool
) -> bytes:
    address = read_address(home)
    if not exists(address.pid):
        raise ConnectionError(f"the process {address.pid} has ended")
    reader, writer = await asyncio.open_unix_connection(address.socket, limit=messages.BUFFER_BYTES)
    try:
        writer.write(messages.frame_message(messages.Handshake(address.token)) + messages.frame_message(message))
        while True:
            frame = messages.frame(await _next_message(reader, attempt, address.pid if patient else None))
            match frame:
                case messages.Result(value):
                    return value
                case messages.Failed() as failed:
                    raise messages.error_of(failed)
                case messages.Progressed(done, total):
                    if progress is not None:
                        progress(done, total)
                case messages.Gone():
                    raise ConnectionError("the service ends")
                case messages.StillWorking():
                    pass
    finally:
        writer.transport.abort()  # closing would wait until a service that is stopped has read the call


def read_address(home: Path) -> messages.ServiceAddress:
    """The address on which the service listens. It is read in the event loop, because a thread would cost more than the
    call.

    Raises `OSError`, also for a copy of a folder, in which the address is that of the original.
    """
    address = messages.address((home / layout.INDEX_ADDRESS).read_bytes())
    if not home.samefile(address.home):
        raise FileNotFoundError(f"it is a copy of {address.home}")
    return address


async def _next_message(reader: asyncio.StreamReader, attempt: Attempt, busy: int | None) -> bytes:
    """The next message. Each part of it that arrives counts as progress, and so do computations of the process
    `busy`."""
    watching = asyncio.create_task(_watch(busy, attempt)) if busy is not None else None
    try:
        return await _receive(reader, attempt)
    finally:
        if watching is not None:
            await cancel_all(watching)


async def _watch(pid: int, attempt: Attempt) -> None:
    """Restart the deadline while the process `pid` computes, at most for `PATIENCE_SECONDS`."""
    before, give_up = activity(pid), time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < give_up:
        await asyncio.sleep(WORKING_SECONDS)
        if (now := activity(pid)) != before:
            attempt.progress()
            before = now


async def _receive(reader: asyncio.StreamReader, attempt: Attempt) -> bytes:
    length = int.from_bytes(await reader.readexactly(messages.LENGTH_BYTES), "big")
    if length > messages.MESSAGE_BYTES_MAX:
        raise ConnectionError("it does not use this protocol")
    parts = []
    while length:
        part = await reader.read(length)
        if not part:
            raise ConnectionError("it has ended while it answered")
        attempt.progress()
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def activity(pid: int) -> object:
    """A value that changes while a process runs or waits for a processor. Where the system does not report it, the
    value always changes."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return time.monotonic()
    return time.monotonic() if state == "R" else (fields[10], fields[11])  # seconds of processors


def exists(pid: int) -> bool:
    """Whether there may be a process `pid`."""
    if os.name != "posix":
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError, ValueError):
        return False
    except PermissionError:
        return True
    return pid > 0


def _remove_stale_address(home: Path) -> bool:
    """Delete the address if no process serves the folder, but another program listens there and does not respond."""
    from recallog_projections import private_files

    with contextlib.suppress(OSError, private_files.LockHeld), private_files.hold_lock(home / layout.INDEX_LOCK):
        (home / layout.INDEX_ADDRESS).unlink(missing_ok=True)
        return True
    return False
