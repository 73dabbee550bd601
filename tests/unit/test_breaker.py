"""The circuit breaker, in virtual time."""

import asyncio
import socket
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from recallog_projections.breaker import OPEN_SECONDS, Breaker
from recallog_projections.patience import OUTAGE_SECONDS, patient
from recallog_schemas.errors import StorageUnavailable
from recallog_schemas.limits import PATIENT_SECONDS
from support.virtual_time import run_in_virtual_time


class Dependency:
    """Answers, refuses or is silent, and counts the calls that reach it."""

    def __init__(self) -> None:
        self.calls = 0
        self.state = "answers"
        self.breaker = Breaker(lambda reason: StorageUnavailable(f"the server {reason}"), 2.0)

    async def call(self) -> str:
        self.calls += 1
        match self.state:
            case "silent":
                await asyncio.Event().wait()
            case "refuses":
                raise ConnectionRefusedError("connection refused")
            case "invalid":
                raise ValueError("wrong type")
        return "answer"

    async def asked(self) -> str:
        return await self.breaker.call(self.call)

    async def error(self) -> str:
        with pytest.raises(StorageUnavailable) as caught:
            await self.asked()
        return str(caught.value)


def spent() -> float:
    return asyncio.get_running_loop().time()


def in_virtual_time(test: Callable[[Dependency], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def of_pytest() -> None:
        run_in_virtual_time(test(Dependency()))

    of_pytest.__name__ = test.__name__
    return of_pytest


@in_virtual_time
async def test_a_silent_call_ends_after_the_deadline(server: Dependency) -> None:
    server.state = "silent"
    assert await server.error() == "the server has said nothing for 2 s"
    assert spent() == pytest.approx(2.0, abs=0.1)


@in_virtual_time
async def test_after_a_failure_calls_fail_at_once_and_do_not_reach_the_server(server: Dependency) -> None:
    server.state = "refuses"
    assert await server.error() == "the server cannot be reached (connection refused)"
    for _ in range(100):
        assert "connection refused); it is tried again in 2.0 s" in await server.error()
    assert (server.calls, spent()) == (1, 0.0)


@in_virtual_time
async def test_one_call_tries_again_and_the_others_do_not_wait_for_it(server: Dependency) -> None:
    server.state = "silent"
    await server.error()
    await asyncio.sleep(OPEN_SECONDS)
    probe = asyncio.create_task(server.error())
    await asyncio.sleep(0)
    assert "it is tried again by one call now" in await server.error()
    assert server.calls == 2
    assert await probe == "the server has said nothing for 2 s"
    assert "it is tried again in 2.0 s" in await server.error()


@in_virtual_time
async def test_a_server_that_answers_again_is_used_by_all(server: Dependency) -> None:
    server.state = "silent"
    await server.error()
    server.state = "answers"
    await server.error()
    await asyncio.sleep(OPEN_SECONDS)
    assert await server.asked() == "answer"
    assert await asyncio.gather(*(server.asked() for _ in range(10))) == ["answer"] * 10
    assert spent() == pytest.approx(2.0 + OPEN_SECONDS, abs=0.1)


@in_virtual_time
async def test_a_cancelled_probe_lets_the_next_call_try(server: Dependency) -> None:
    server.state = "silent"
    await server.error()
    await asyncio.sleep(OPEN_SECONDS)
    probe = asyncio.create_task(server.asked())
    await asyncio.sleep(0)
    probe.cancel()
    with pytest.raises(asyncio.CancelledError):
        await probe
    server.state = "answers"
    assert await server.asked() == "answer"


@in_virtual_time
async def test_an_error_that_the_server_answers_is_an_answer(server: Dependency) -> None:
    server.state = "refuses"
    await server.error()
    await asyncio.sleep(OPEN_SECONDS)
    server.state = "invalid"
    with pytest.raises(ValueError, match="wrong type"):
        await server.asked()
    server.state = "answers"
    assert await server.asked() == "answer"


@in_virtual_time
async def test_progress_begins_the_deadline_anew(server: Dependency) -> None:
    async def messages(*pauses: float) -> None:
        async with server.breaker.attempt() as attempt:
            for pause in pauses:
                await asyncio.sleep(pause)
                attempt.progress()

    await messages(*[1.9] * 10)
    assert spent() == pytest.approx(19.0)
    with pytest.raises(StorageUnavailable, match="has said nothing for 2 s"):
        await messages(1.9, 3.0)


@in_virtual_time
async def test_one_slow_call_beside_answered_ones_does_not_open_the_breaker(server: Dependency) -> None:
    server.state = "silent"
    slow = asyncio.create_task(server.error())
    await asyncio.sleep(1.0)
    server.state = "answers"
    await server.asked()
    assert await slow == "the server has said nothing for 2 s"
    assert await server.asked() == "answer"


@in_virtual_time
async def test_a_limit_within_the_block_is_a_failure_and_not_the_deadline(server: Dependency) -> None:
    async def limited() -> None:
        async with asyncio.timeout(0.5):
            await asyncio.Event().wait()

    with pytest.raises(StorageUnavailable, match="cannot be reached"):
        await server.breaker.call(limited)
    assert spent() == pytest.approx(0.5)


@in_virtual_time
async def test_a_call_that_its_caller_cancels_says_nothing_about_the_server(server: Dependency) -> None:
    server.state = "silent"
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1.0):
            await server.asked()
    server.state = "answers"
    assert await server.asked() == "answer"


def test_an_answer_that_arrived_while_this_process_was_busy_is_read() -> None:
    here, there = socket.socketpair()

    def answer_and_be_busy() -> None:
        there.send(b"answer")
        time.sleep(0.3)  # longer than the deadline: the loop finds the answer and the deadline together

    async def asked() -> bytes:
        reader, writer = await asyncio.open_connection(sock=here)
        asyncio.get_running_loop().call_soon(answer_and_be_busy)
        try:
            return await reader.readexactly(6)
        finally:
            writer.close()

    with there:
        assert asyncio.run(Breaker(StorageUnavailable, 0.2).call(asked)) == b"answer"


@in_virtual_time
async def test_a_patient_call_waits_as_long_as_a_worker(server: Dependency) -> None:
    server.state = "silent"
    with patient():
        assert await server.error() == f"the server has said nothing for {PATIENT_SECONDS:g} s"
    assert spent() == pytest.approx(PATIENT_SECONDS, abs=0.1)


@pytest.mark.parametrize("state", ["silent", "refuses"])
def test_a_patient_call_goes_on_after_an_outage(state: str) -> None:
    async def scenario(server: Dependency) -> None:
        assert await server.asked() == "answer"
        server.state = state
        asyncio.get_running_loop().call_later(OUTAGE_SECONDS / 2, setattr, server, "state", "answers")
        with patient():
            assert await server.asked() == "answer"
        assert OUTAGE_SECONDS / 2 <= spent() <= OUTAGE_SECONDS / 2 + PATIENT_SECONDS + OPEN_SECONDS

    run_in_virtual_time(scenario(Dependency()))


@in_virtual_time
async def test_a_patient_call_ends_if_the_outage_does_not(server: Dependency) -> None:
    assert await server.asked() == "answer"
    server.state = "refuses"
    with patient():
        assert "connection refused" in await server.error()
    assert spent() == pytest.approx(OUTAGE_SECONDS, abs=2 * OPEN_SECONDS)


@in_virtual_time
async def test_a_patient_call_to_a_server_that_was_never_there_fails_at_once(server: Dependency) -> None:
    server.state = "refuses"
    with patient():
        assert "connection refused" in await server.error()
    assert spent() == 0


@in_virtual_time
async def test_a_patient_call_waits_until_an_open_breaker_lets_it_through(server: Dependency) -> None:
    assert await server.asked() == "answer"
    server.state = "refuses"
    await server.error()
    server.state = "answers"
    with patient():
        assert await server.asked() == "answer"
    assert spent() == pytest.approx(OPEN_SECONDS, abs=0.2)


@in_virtual_time
async def test_work_that_must_not_be_repeated_is_done_once_also_patiently(server: Dependency) -> None:
    assert await server.asked() == "answer"
    server.state = "refuses"
    with patient(), pytest.raises(StorageUnavailable):
        await server.breaker.call(server.call, repeatable=False)
    assert server.calls == 2


@in_virtual_time
async def test_a_question_beside_a_patient_call_gives_up_as_before(server: Dependency) -> None:
    assert await server.asked() == "answer"
    server.state = "silent"
    with patient():
        working = asyncio.create_task(server.asked())
    assert await server.error() == "the server has said nothing for 2 s"
    server.state = "answers"
    assert await working == "answer"
