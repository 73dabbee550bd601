"""A run: each trial is a child of this process, so that a crash ends one trial, and imports are done once."""

import asyncio
import faulthandler
import gc
import importlib
import json
import os
import pickle
import resource
import selectors
import shutil
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from flip import folders, trial
from flip.folders import Folders
from flip.judge import Expected, Outcome, Verdict
from flip.memories import without_folder
from flip.trial import CALL_SECONDS_MAX, Plan
from recallog import layout

SILENCE_SECONDS_MAX = CALL_SECONDS_MAX + 10.0
"""How long a child may say nothing before it is killed: longer than a call that ends by itself at its limit."""
_MEMORY_BYTES_MAX = 8 << 30
"""Of one child: a damaged length must not take the machine's memory."""
_OUTPUT_CHARS_MAX = 2_000


@dataclass
class Trial:
    """A trial and its outcomes."""

    plan: Plan
    outcomes: list[Outcome] = field(default_factory=list)
    seconds: float = 0.0
    output: str = ""
    """The end of what its process wrote on standard error."""


@dataclass
class _Child:
    pid: int
    stream: int
    trial: Trial
    folder: Path
    again: bool
    """Whether it repeats a trial that hung."""
    began: float = field(default_factory=time.monotonic)
    heard: float = field(default_factory=time.monotonic)
    data: bytes = b""
    doing: str = "start"
    complete: bool = False
    killed: bool = False


def prepare(root: Path) -> tuple[Folders, Expected]:
    """The folders to damage and the answers of a whole one; both are reused if `root` has them."""
    recorded = root / "expected.pickle"
    if not recorded.exists():
        root.mkdir(parents=True, exist_ok=True)
        built = folders.build(root)
        # In a child: this process must have no threads when it forks.
        folders.in_child(lambda: _record(built, recorded))
    expected, modules = pickle.loads(recorded.read_bytes())
    _warm(modules, root)
    return folders.opened(root), expected


async def _record(built: Folders, recorded: Path) -> None:
    expected = await trial.expect(built, built.root / "recording")
    shutil.rmtree(built.root / "recording")
    recorded.write_bytes(pickle.dumps((expected, sorted(sys.modules))))


def _warm(modules: Sequence[str], root: Path) -> None:
    """Do once what each child would have to do: import what is imported late, and build the models of answers."""
    for name in modules:
        with suppress(ImportError):
            importlib.import_module(name)

    async def ask() -> None:
        async with without_folder(trial.ALL) as memory:
            await trial.answers(memory, root / "warming")

    asyncio.run(ask())
    shutil.rmtree(root / "warming", ignore_errors=True)


def run(
    plans: Iterable[Plan],
    root: Folders,
    expected: Expected,
    folder: Path,
    *,
    processes: int = 2,
    keep: bool = False,
    ended: Callable[[Trial], None] = lambda trial: None,
) -> list[Trial]:
    """Execute trials, several at a time; `ended` is called with each that has ended."""
    gc.collect()
    gc.freeze()  # or each child would copy what the collector touches
    waiting, done = deque((plan, False) for plan in plans), list[Trial]()
    children = dict[int, _Child]()
    with selectors.DefaultSelector() as selector:
        try:
            while waiting or children:
                while waiting and len(children) < (1 if waiting[0][1] else processes):
                    plan, again = waiting.popleft()
                    child = _start(plan, again, root, expected, folder)
                    children[child.stream] = child
                    selector.register(child.stream, selectors.EVENT_READ)
                ready = [key.fd for key, _ in selector.select(0.5)]
                for child in list(children.values()):
                    if child.stream in ready and not _hear(child):
                        selector.unregister(child.stream)
                        del children[child.stream]
                        _end(child, keep=keep)
                        if _hung(child.trial) and not child.again:
                            waiting.append((child.trial.plan, True))  # alone, at the end: a busy machine hangs too
                            continue
                        if _engine_crashed(child.trial) and (served := child.trial.plan.as_served(root)):
                            child.trial.outcomes[-1].verdict = Verdict.ENGINE
                            waiting.appendleft((served, False))
                        done.append(child.trial)
                        ended(child.trial)
                    elif time.monotonic() - child.heard > SILENCE_SECONDS_MAX and not child.killed:
                        child.killed = True
                        _kill(child)
        finally:
            for child in children.values():
                _kill(child)
                os.waitpid(child.pid, 0)
                shutil.rmtree(child.folder, ignore_errors=True)
    return done


def _hung(ended: Trial) -> bool:
    return any(outcome.verdict is Verdict.HANG for outcome in ended.outcomes)


def _engine_crashed(ended: Trial) -> bool:
    """Whether a damaged file of the engine ended a process that has the engine in itself, as no user's process has."""
    damaged = any(mutation.file.startswith(str(layout.INDEX_ENGINE)) for mutation in ended.plan.mutations)
    crashed = bool(ended.outcomes) and ended.outcomes[-1].verdict is Verdict.CRASH
    return crashed and damaged and ended.plan.state != folders.SERVED and "Traceback" not in ended.outcomes[-1].detail


def _start(plan: Plan, again: bool, root: Folders, expected: Expected, folder: Path) -> _Child:
    own = folder / f"trial-{plan.number}"
    shutil.rmtree(own, ignore_errors=True)
    own.mkdir(parents=True)
    read, write = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write)
        return _Child(pid, read, Trial(plan), own, again)
    os.close(read)
    os.setpgid(0, 0)
    try:
        _execute(plan, root, expected, own, write)
        os._exit(0)
    except BaseException:  # noqa: BLE001 - the parent reports it
        traceback.print_exc()
        os._exit(1)


def _kill(child: _Child) -> None:
    """Kill a child and the process that serves its index."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


def _execute(plan: Plan, root: Folders, expected: Expected, folder: Path, stream: int) -> None:
    """The child: execute the trial, and write a line of JSON before and after each call."""
    output = os.open(folder / "output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    faulthandler.enable()
    for limited, most in ((resource.RLIMIT_AS, _MEMORY_BYTES_MAX), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(limited, (most, most))

    def say(what: Outcome | str) -> None:
        line = what if isinstance(what, str) else what.document()
        os.write(stream, json.dumps(line).encode() + b"\n")

    asyncio.run(trial.run(plan, root, expected, folder, say))
    say("complete")


def _hear(child: _Child) -> bool:
    """Read what a child says; return whether it may say more."""
    data = os.read(child.stream, 1 << 16)
    if not data:
        return False
    child.heard = time.monotonic()
    *lines, child.data = (child.data + data).split(b"\n")
    for line in map(json.loads, lines):
        if line == "complete":
            child.complete = True
        elif isinstance(line, str):
            child.doing = line
        else:
            line["verdict"] = Verdict[line["verdict"]]
            child.trial.outcomes.append(Outcome(**line))
    return True


def _end(child: _Child, *, keep: bool) -> None:
    """Wait for the end of a child that has closed its stream."""
    os.close(child.stream)
    _, status = os.waitpid(child.pid, 0)
    ended = child.trial
    ended.seconds = time.monotonic() - child.began
    output = child.folder / "output"
    if output.exists():
        ended.output = output.read_text(errors="replace")[-_OUTPUT_CHARS_MAX:]
    stage, _, question = child.doing.partition(": ")
    if child.killed:
        ended.outcomes.append(
            Outcome(question, stage, Verdict.HANG, f"nothing for {SILENCE_SECONDS_MAX:g} s; its process was killed")
        )
    elif status or not child.complete:
        how = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"exit {status >> 8}"
        ended.outcomes.append(Outcome(question, stage, Verdict.CRASH, f"{how}: {ended.output.strip()[-600:]}"))
    if not keep:
        shutil.rmtree(child.folder, ignore_errors=True)
