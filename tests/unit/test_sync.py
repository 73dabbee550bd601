"""The synchronous API: the methods of `recallog.Memory`, in scripts, notebooks and threads."""

import asyncio
import gc
import inspect
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from pathlib import Path
from typing import Any, ClassVar, cast

import msgspec
import pytest

import recallog
import recallog.sync
from recallog import MODELS, Event, InvalidArgument, InvalidEvent, Model, RecallogError, StorageError, errors
from recallog.composition import assemble
from recallog.extending import (
    DueTrigger,
    FacadePart,
    MemoryLedger,
    MemoryStore,
    Projection,
    Reactor,
    Record,
    Rows,
    Table,
    operation,
    parameters,
)
from recallog.operations.facade import Facade, public_names
from recallog.sync import Memory, Remote
from recallog.sync.deriving import SyncFacade, synchronous
from recallog.views import View
from recallog_schemas import limits
from recallog_tools import stubs
from support.cli import environment_of
from support.events import event, numbered, run

THREAD = "recallog-memory"


def threads() -> int:
    return sum(each.name == THREAD for each in threading.enumerate())


def join_threads() -> None:
    for thread in threading.enumerate():
        if thread.name == THREAD:
            thread.join(30)


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = threads()
    yield
    assert threads() == before


class Greeting(View):
    """A greeting."""

    text: str


class Greetings(FacadePart):
    """Greets: `memory.greetings`."""

    attribute = "greetings"

    @operation(example="recallog greet village", command="greet")
    async def greet(self, space: parameters.Space) -> Greeting:
        """Greet a space."""
        return Greeting(text=f"Hello {space}")


# What it has


def test_a_memory_has_the_facades_of_the_models_that_it_was_opened_with() -> None:
    models = [*MODELS, Model(name="greetings", operations=Greetings)]
    with Memory.in_memory(models=models) as memory:
        assert isinstance(memory, Memory)
        assert cast(Any, memory).greetings.greet("village").text == "Hello village"
    with Memory.in_memory() as memory:
        assert not hasattr(memory, "greetings")


PAIRS = [
    (recallog.Memory, Memory),
    (recallog.Remote, Remote),
    *(
        (each, getattr(recallog.sync, each.__name__))
        for each in dict.fromkeys([*recallog.Memory.facades.values(), *recallog.Remote.facades.values()])
    ),
]


@pytest.mark.parametrize(("asynchronous", "sync"), PAIRS, ids=lambda each: each.__name__)
def test_each_public_method_has_the_parameters_and_the_documentation_of_the_asynchronous_one(
    asynchronous: type[Facade], sync: type[SyncFacade]
) -> None:
    assert public_names(asynchronous)
    for name in public_names(asynchronous):
        ours, theirs = getattr(sync, name), getattr(asynchronous, name)
        assert inspect.getdoc(ours), name
        assert "await" not in (inspect.getdoc(ours) or ""), name
        if callable(theirs):
            assert inspect.signature(ours).parameters == inspect.signature(theirs).parameters, name
            assert not inspect.iscoroutinefunction(ours), name


@pytest.mark.models("all")
def test_the_stubs_are_those_of_the_code() -> None:
    # If this fails: make generate
    assert {file: file.read_text() for file in stubs.generated()} == stubs.generated()


def test_its_names_are_those_of_the_facades() -> None:
    assert recallog.sync.__all__ == sorted(each.__name__ for each, _ in PAIRS)


def test_an_operation_of_a_subclass_is_derived_too() -> None:
    from unit.test_toy_operation import WithToy, WithWatch

    toy, watch = synchronous(WithToy), synchronous(WithWatch)
    assert inspect.signature(toy.loudest).parameters["top_k"].default == 3  # type: ignore[attr-defined]
    assert "night_watch" in watch.facades


def test_an_attribute_that_is_neither_a_method_nor_a_facade_cannot_be_derived() -> None:
    class WithNumber(recallog.Memory):
        number = 3

    with pytest.raises(TypeError, match=r"WithNumber\.number is neither a method nor a facade"):
        synchronous(WithNumber)


# Answers and errors


@pytest.mark.models("long_term")
def test_answers_are_those_of_the_asynchronous_memory(tmp_path: Path) -> None:
    with Memory.open(tmp_path) as memory:
        assert str(memory.publish_many(numbered(20)).items[-1]) == "0:19"
        memory.long_term.retain("village", "baker", "The miller pays late.", entry_id="l-1")
        found = (
            memory.episodic("village", "baker"),
            memory.timeline("village", "baker", limit=3),
            memory.long_term.list("village", "baker"),
            memory.resume("village"),
            memory.admin.verify("views").ok,
            memory.admin.ledger_ends(),
        )

    async def expected() -> tuple[Any, ...]:
        async with recallog.Memory.open(tmp_path) as memory:
            return (
                await memory.episodic("village", "baker"),
                await memory.timeline("village", "baker", limit=3),
                await memory.long_term.list("village", "baker"),
                await memory.resume("village"),
                (await memory.admin.verify("views")).ok,
                await memory.admin.ledger_ends(),
            )

    assert found == run(expected())


def test_a_memory_of_components_and_one_of_none() -> None:
    with Memory(assemble(MemoryLedger(), lambda _: MemoryStore())) as memory:
        assert memory.reactor_of("unknown.due") is None
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'components'"):
        Memory()  # type: ignore[call-arg]


def test_errors_are_those_of_the_asynchronous_memory() -> None:
    with Memory.in_memory() as memory:
        with pytest.raises(InvalidArgument, match="space: 'no name ' is not a name"):
            memory.episodic("no name ", "baker")
        with pytest.raises(InvalidEvent):
            memory.publish({"space": "village"})
        with pytest.raises(InvalidArgument, match="table: "):
            memory.row("table", "village")  # type: ignore[arg-type]
        with pytest.raises(recallog.IdConflict):
            memory.publish_many([event(id="e", turn=1), event(id="e", turn=2)])
        assert memory.publish(event()).offset == 0
    with pytest.raises(InvalidArgument, match="reactors"):
        Memory.in_memory(reactors="all")  # type: ignore[arg-type]


@pytest.mark.models("long_term")
def test_a_closed_memory_says_so_and_can_be_closed_again(tmp_path: Path) -> None:
    memory = Memory.open(tmp_path)
    facade = memory.long_term
    memory.publish(event())
    memory.close()
    memory.close()
    for ask in (lambda: memory.episodic("village", "baker"), lambda: facade.list("village", "baker")):
        with pytest.raises(StorageError, match="the memory is closed; open it again"):
            ask()


def test_a_memory_that_is_never_used_begins_no_thread() -> None:
    memory = Memory.in_memory()
    assert threads() == 0
    del memory


# Loops and threads


def test_it_works_while_an_event_loop_runs() -> None:
    async def cell() -> int:
        with Memory.in_memory() as memory:
            memory.publish_many(numbered(3))
            return len(memory.episodic("village", "baker").memories)

    assert asyncio.run(cell()) == 3


def test_several_threads_use_one_memory_at_a_time(tmp_path: Path) -> None:
    with Memory.open(tmp_path) as memory, ThreadPoolExecutor(8) as pool:

        def work(number: int) -> int:
            space = f"space-{number}"
            for turn in range(10):
                memory.publish(event(space=space, turn=turn))
            return len(memory.timeline(space, "baker").items)

        assert list(pool.map(work, range(16))) == [10] * 16
        assert threads() == 1


def test_two_memories_are_independent() -> None:
    with Memory.in_memory() as one, Memory.in_memory() as other:
        one.publish(event())
        assert other.episodic("village", "baker").memories == ()
        assert threads() == 2


def test_a_call_takes_the_context_variables_of_its_caller() -> None:
    request = ContextVar("request", default="none")
    seen = []

    class Watching(MemoryLedger):
        async def append(
            self, events: Sequence[Event], appended: Sequence[int] | None = None
        ) -> list[recallog.Position]:
            seen.append(request.get())
            return await super().append(events)

    with Memory(assemble(Watching(), lambda _: MemoryStore())) as memory:
        context = copy_context()
        context.run(request.set, "r-1")
        context.run(memory.publish, event())
        memory.publish(event())
    assert seen == ["r-1", "none"]


# Iterators


def test_records_are_iterated_and_an_iterator_may_be_left() -> None:
    with Memory(assemble(MemoryLedger(batch_records=2), lambda _: MemoryStore())) as memory:
        memory.publish_many(numbered(5))
        batches = list(memory.admin.records())
        assert [len(batch.records) for batch in batches] == [2, 2, 1]
        for batch in memory.admin.records():
            assert batch == batches[0]
            break
        left = memory.admin.records("0:2")
        assert next(left).start == 2
        del left
        gc.collect()
        with pytest.raises(InvalidArgument, match="start"):
            memory.admin.records("nowhere")
        unfinished = memory.admin.records()
        next(unfinished)
    with pytest.raises(StorageError, match="closed"):
        list(unfinished)


# Callbacks


def test_progress_is_called_in_the_thread_that_calls() -> None:
    called = []
    with Memory.in_memory() as memory:
        memory.publish_many(numbered(3))
        memory.admin.rebuild(progress=lambda *done: called.append((done, threading.current_thread())))
        assert set(called) == {((3, 3), threading.current_thread())}


def test_the_progress_of_open_is_called_in_the_thread_that_calls(tmp_path: Path) -> None:
    called = []
    with Memory.open(tmp_path) as memory:
        memory.publish_many(numbered(3))
    with Memory.open(tmp_path, progress=lambda *done: called.append(threading.current_thread())) as memory:
        memory.admin.ledger_ends()
        assert not called
        memory.episodic("village", "baker")
    assert set(called) == {threading.current_thread()}


def test_an_error_of_a_callback_is_raised_by_the_call() -> None:
    class Full(Exception):
        pass

    def fail(done: int, total: int) -> None:
        raise Full

    with Memory.in_memory() as memory:
        memory.publish_many(numbered(3))
        with pytest.raises(Full):
            memory.admin.rebuild(progress=fail)
        assert memory.admin.rebuild().ok


@pytest.mark.parametrize("stopping", [KeyboardInterrupt, SystemExit])
def test_a_callback_may_end_the_call(stopping: type[BaseException]) -> None:
    def stop(done: int, total: int) -> None:
        raise stopping

    with Memory.in_memory() as memory:
        memory.publish_many(numbered(3))
        with pytest.raises(stopping):
            memory.admin.rebuild(progress=stop)
        assert memory.admin.rebuild().ok


def test_a_callback_cannot_call_the_memory_that_waits_for_it_but_another_one() -> None:
    with Memory.in_memory() as memory, Memory.in_memory() as other:
        memory.publish_many(numbered(3))

        def ask(done: int, total: int) -> None:
            other.publish(event())
            with pytest.raises(RuntimeError, match="a callback cannot call the memory"):
                memory.episodic("village", "baker")
            with pytest.raises(RuntimeError, match="a callback cannot call the memory"):
                memory.close()

        memory.admin.rebuild(progress=ask)
        assert len(other.episodic("village", "baker").memories) == 1
        assert len(memory.episodic("village", "baker").memories) == 3


def test_a_callback_that_is_none_is_refused() -> None:
    with Memory.in_memory() as memory:
        with pytest.raises(InvalidArgument, match="progress: should be a function"):
            memory.admin.rebuild(progress="loud")  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument, match="rebuild has no such argument"):
            memory.admin.rebuild(progres=print)  # type: ignore[call-arg]


# Projections and reactors of the user's


class Bakes(msgspec.Struct, frozen=True, array_like=True):
    loaves: int


LOAVES = Table("loaves", Bakes)


class Loaves(Projection):
    """Counts what a baker says."""

    name: ClassVar[str] = "loaves"
    version: ClassVar[int] = 1
    tables = (LOAVES,)

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        for record in run:
            before = rows.get(LOAVES, record.event.space)
            rows.put(LOAVES, Bakes(1 if before is None else before.loaves + 1), record.event.space)


def test_projections_of_ones_own_are_read() -> None:
    with Memory.in_memory(projections=[Loaves()]) as memory:
        memory.publish_many(numbered(3))
        assert memory.row(LOAVES, "village") == Bakes(3)


class Reflecting(Reactor):
    """Answers reflections as `work` says."""

    kinds: ClassVar[frozenset[str]] = frozenset({"reflection.due"})

    def __init__(self, work: Callable[[DueTrigger], Any]) -> None:
        self.work = work
        self.memory: Any = None

    def attach(self, memory: Any) -> None:
        self.memory = memory

    async def answer(self, trigger: DueTrigger) -> Sequence[Event] | None:
        answer = self.work(trigger)
        if inspect.isawaitable(answer):
            await answer
        answer = {"id": f"{trigger.id}/answer", "causation_id": trigger.id}
        belief = {"belief": threading.current_thread().name}
        return [event("agent.reflected", space=trigger.space, agent=trigger.agent, payload=belief, **answer)]


REFLECTING = event("agent.configured", payload={"reflection_threshold": 3})


@pytest.mark.models("beliefs")
def test_reactors_answer_in_the_background_within_with() -> None:
    with Memory.in_memory(reactors=[Reflecting(lambda _: None)]) as memory:
        memory.publish_many([REFLECTING, *numbered(3)])
        give_up = time.monotonic() + 30
        while not memory.beliefs("village", "baker").beliefs:
            assert time.monotonic() < give_up
            time.sleep(0.01)
        assert memory.beliefs("village", "baker").beliefs[0].event.payload["belief"] == THREAD


@pytest.mark.models("beliefs")
def test_a_reactor_that_calls_the_synchronous_memory_is_told_which_one_to_use() -> None:
    said = []

    def ask(trigger: DueTrigger) -> None:
        try:
            memory.episodic("village", "baker")
        except RuntimeError as error:
            said.append(str(error))

    with Memory.in_memory(reactors=[reactor := Reflecting(ask)]) as memory:
        pass
    memory = Memory(assemble(MemoryLedger(), lambda _: MemoryStore()), reactors=[reactor])
    memory.publish_many([REFLECTING, *numbered(3)])
    assert len(memory.react().items) == 1
    assert "the memory that `attach` is called with" in said[0]
    assert isinstance(reactor.memory, recallog.Memory)
    memory.close()


@pytest.mark.models("beliefs")
def test_a_reactor_that_exits_ends_its_call_and_not_the_memory() -> None:
    def leave(trigger: DueTrigger) -> None:
        raise SystemExit(3)

    memory = Memory(assemble(MemoryLedger(), lambda _: MemoryStore()), reactors=[Reflecting(leave)])
    memory.publish_many([REFLECTING, *numbered(3)])
    with pytest.raises(SystemExit):
        memory.react()
    assert len(memory.pending().items) == 1
    memory.close()


@pytest.mark.models("beliefs")
def test_keep_reacting_ends_with_an_error_of_its_callback() -> None:
    class Enough(Exception):
        pass

    def stop(error: RecallogError) -> float:
        assert threading.current_thread() is threading.main_thread()
        raise Enough from error

    def fail(trigger: DueTrigger) -> None:
        raise errors.StorageUnavailable("the disk is away")

    with Memory(assemble(MemoryLedger(), lambda _: MemoryStore()), reactors=[Reflecting(fail)]) as memory:
        memory.publish_many([REFLECTING, *numbered(3)])
        with pytest.raises(Enough):
            memory.keep_reacting(None, stop)


# Ctrl-C

INTERRUPTED = """
import asyncio, os, signal, sys, threading
from recallog.sync import Memory, Remote
from recallog import Event
from recallog.extending import Reactor

class Slow(Reactor):
    kinds = frozenset({"reflection.due"})
    async def answer(self, trigger):
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            await asyncio.sleep(60)
        finally:
            print("cancelled", flush=True)

with Memory.open(sys.argv[1], reactors=[Slow()]) as opened:
    pass
memory = Memory.open(sys.argv[1], reactors=[Slow()])
memory.publish(Event(space="village", agent="baker", kind="agent.configured", payload={"reflection_threshold": 1}))
memory.publish(Event(space="village", agent="baker", kind="agent.spoke", payload={"text": "Bread!"}))
try:
    memory.react()
except KeyboardInterrupt:
    print("interrupted", flush=True)
print(memory.episodic("village", "baker").format())
print(len(memory.pending().items), "pending")
memory.close()
"""


def script(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "default", "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment_of(), timeout=120, check=False)


@pytest.mark.models("all")
def test_ctrl_c_cancels_the_call_and_the_memory_can_be_used_afterwards(tmp_path: Path) -> None:
    done = script(INTERRUPTED, tmp_path)
    assert done.stderr == ""
    assert done.stdout == "cancelled\ninterrupted\n[turn 000][agent.spoke] Bread!\n1 pending\n"


@pytest.mark.models("prompt")
def test_ctrl_c_does_not_wait_for_a_call_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()

    async def stubborn(trigger: DueTrigger) -> None:
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        while not released.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue

    memory = Memory(assemble(MemoryLedger(), lambda _: MemoryStore()), reactors=[Reflecting(stubborn)])
    memory.publish_many([REFLECTING, *numbered(3)])
    began = time.monotonic()
    with monkeypatch.context() as patched:
        patched.setattr(limits, "CANCELLED_CALL_SECONDS", 0.2)
        with pytest.raises(KeyboardInterrupt):
            memory.react()
    assert time.monotonic() - began < 20
    assert len(memory.episodic("village", "baker").memories) == 3
    released.set()
    memory.close()


# Closing


@pytest.mark.models("beliefs")
def test_close_cancels_the_calls_of_other_threads(tmp_path: Path) -> None:
    began = threading.Event()

    async def wait(trigger: DueTrigger) -> None:
        began.set()
        await asyncio.sleep(60)

    memory = Memory(assemble(MemoryLedger(), lambda _: MemoryStore()), reactors=[Reflecting(wait)])
    memory.publish_many([REFLECTING, *numbered(3)])
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(memory.react)
        assert began.wait(30)
        memory.close()
        with pytest.raises(StorageError, match="the memory is closed"):
            call.result(30)


@pytest.mark.models("beliefs")
def test_close_is_bounded_also_where_the_thread_is_blocked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SYNC_CLOSE_SECONDS", 0.2)
    monkeypatch.setattr(limits, "CANCELLED_CALL_SECONDS", 0.2)
    began, released = threading.Event(), threading.Event()

    def block(trigger: DueTrigger) -> None:
        began.set()
        released.wait(60)

    memory = Memory(assemble(MemoryLedger(), lambda _: MemoryStore()), reactors=[Reflecting(block)])
    memory.publish_many([REFLECTING, *numbered(3)])
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(memory.react)
        assert began.wait(30)
        with pytest.raises(StorageError, match=r"has not closed within 0\.2 s"):
            memory.close()
        with pytest.raises(StorageError, match="the memory is closed"):
            call.result(30)
        released.set()
    memory.close()
    join_threads()


@pytest.mark.models("all")
@pytest.mark.parametrize("reactors", [False, True])
def test_a_memory_that_is_not_closed_warns_when_it_is_collected_and_ends_its_thread(
    tmp_path: Path, reactors: bool
) -> None:
    memory = Memory.open(tmp_path, reactors=reactors)
    memory.__enter__()
    memory.publish(event())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del memory
        gc.collect()
    assert [
        str(each.message) for each in caught if each.category is ResourceWarning and "recallog" in str(each.message)
    ] == ["a memory of recallog.sync was not closed: open it in a `with` statement, or call close()"]
    join_threads()


@pytest.mark.models("long_term")
def test_a_facade_keeps_its_memory_open() -> None:
    memory = Memory.in_memory()
    facade = memory.long_term
    seen = weakref.ref(memory)
    memory.publish(event())
    del memory
    gc.collect()
    assert seen() is None
    assert facade.list("village", "baker").entries == ()
    facade._thread.close()


FORGOTTEN = """
import sys
from recallog.sync import Memory, Remote
from recallog import Event
memory = Memory.open(sys.argv[1], reactors=True)
memory.__enter__()
memory.publish(Event(space="village", agent="baker", kind="agent.spoke", payload={"text": "Bread!"}))
print(memory.episodic("village", "baker").format())
"""


def test_a_script_that_forgets_to_close_ends_at_once_with_a_warning_alone(tmp_path: Path) -> None:
    began = time.monotonic()
    done = script(FORGOTTEN, tmp_path)
    assert (done.returncode, done.stdout) == (0, "[turn 000][agent.spoke] Bread!\n")
    lines = [line for line in done.stderr.splitlines() if "ResourceWarning" in line and "recallog" in line]
    assert len(lines) == 1
    assert "Traceback" not in done.stderr
    assert "Task was destroyed" not in done.stderr
    assert time.monotonic() - began < 60


# Forks

FORKED = """
import os, sys, warnings
from recallog.sync import Memory, Remote
from recallog import Event, StorageError
warnings.simplefilter("error", ResourceWarning)
warnings.filterwarnings("ignore", message=".*fork", category=DeprecationWarning)
said = Event(space="village", agent="baker", kind="agent.spoke", payload={"text": "Bread!"})
unused, used = Memory.open(sys.argv[1]), Memory.open(sys.argv[1])
used.publish(said)
if (child := os.fork()) == 0:
    try:
        used.episodic("village", "baker")
    except StorageError as error:
        print(error, flush=True)
    used.close()
    with unused as memory:
        memory.publish(said.model_copy(update={"id": "of-the-child"}))
    sys.exit()
print(os.waitpid(child, 0)[1])
print(used.episodic("village", "baker").format())
used.close()
unused.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_opens_the_memory_again(tmp_path: Path) -> None:
    done = script(FORKED, tmp_path)
    assert done.stderr == ""
    assert done.stdout == (
        "the memory was opened by the parent of this process; open it again after the fork\n0\n"
        "[turn 000][agent.spoke] Bread!\n[turn 000][agent.spoke] Bread!\n"
    )
