"""Runs every command of the tutorials in a clean clone of the repository, and writes the transcripts.

`make transcripts` writes `docs/transcripts`, without the volatile parts of the output: times, ids, durations, ports and
folders. A test runs the same commands and compares. The clone has the last commit, and its memory has no index.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from deploy.local.ports import free_port

REPOSITORY = Path(__file__).parents[2]
TRANSCRIPTS = REPOSITORY / "docs" / "transcripts"
TUTORIALS = sorted((REPOSITORY / "docs" / "tutorials").glob("*.md"))
CLUSTER = "cluster"
"""The tutorial whose commands need Kafka and Redis."""
SETUP = ("pip install ", "make cluster")
"""How commands begin that prepare the machine: they are recorded without their output, and a test leaves them out."""
BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)$", re.MULTILINE)
_NEXT = "-- next --"
_SECONDS = 600
_VOLATILE = (
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)"), "<time>"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "<id>"),
    (re.compile(r"\brl_\S+|\b[0-9a-f]{16}\b"), "<id>"),
    (re.compile(r"\d+ rows, digest"), "<number> rows, digest"),  # on Kafka, buckets of ids are rows, and ids are random
    (re.compile(r"\b\d+(\.\d+)? ?(ms|s|seconds?)\b"), "<duration>"),
    (re.compile(r"(kafka|redis)://[^\s'\"]+"), r"\1://<address>"),
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:<port>"),
    (re.compile(r"--port \d+"), "--port <port>"),
    (re.compile(r"^bash: line \d+: +\d+ Killed.*\n", re.MULTILINE), ""),
    (re.compile(r"[^\s\"']*/bin/recallog"), "<bin>/recallog"),
    (re.compile(r"[ \t]+$", re.MULTILINE), ""),
)


@dataclass(frozen=True, slots=True)
class Step:
    """A command of a tutorial."""

    command: str
    program: str | None = None
    """The text of the Python program that it runs; None: it runs none."""

    @property
    def is_setup(self) -> bool:
        return self.command.startswith(SETUP)


def steps_of(page: Path) -> list[Step]:
    """The commands of a page in its order: those of sessions, those of scripts, and one for each Python program."""
    steps = list[Step]()
    for _, language, code in BLOCK.findall(page.read_text(encoding="utf-8")):
        text = textwrap.dedent(code)
        if language == "python":
            number = sum(step.program is not None for step in steps) + 1
            steps.append(Step(f"python program-{number}.py", text))
        elif language == "console":
            steps += [Step(command) for command in _COMMAND.findall(text)]
        elif language == "shell":
            steps += [Step(command) for command in text.replace("\\\n", "").splitlines()]
    return steps


def run_steps(steps: Sequence[Step], folder: Path, environment: Mapping[str, str]) -> str:
    """The transcript of commands that one shell runs in a folder, without its volatile parts.

    Raises `subprocess.TimeoutExpired` after 10 minutes. Programs that are still running at the end are killed.
    """
    log = folder / "transcript.log"
    for step in steps:
        if step.program is not None:
            (folder / step.command.removeprefix("python ")).write_text(step.program, encoding="utf-8")
    script = "".join(f"{_in_shell(step.command)}\necho\necho '{_NEXT}'\n" for step in steps)
    with (
        log.open("w") as output,
        subprocess.Popen(
            ["bash", "-c", script],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as shell,
    ):
        try:
            shell.wait(_SECONDS)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
    printed = log.read_text(encoding="utf-8").split(f"\n{_NEXT}\n")
    shown = [f"$ {step.command}\n{'' if step.is_setup else out}" for step, out in zip(steps, printed, strict=False)]
    return stable_parts("".join(shown).replace(environment["HOME"], "~").replace(str(folder), "<folder>"))


def _in_shell(command: str) -> str:
    """A command that asks nothing; the logs of workers, which run beside all others, go to a file."""
    if command.startswith("recallog install "):
        return f"{command} --yes"
    return f"{{ {command} }} >workers.log 2>&1" if "recallog worker" in command else command


def with_addresses(steps: Sequence[Step], ledger: str, views: str) -> list[Step]:
    """The steps with the addresses of a cluster that runs, and with ports of workers that are free."""
    given = {"export RECALLOG_LEDGER=": ledger, "export RECALLOG_VIEWS=": views}
    found = [
        next((Step(f"{name}'{address}'") for name, address in given.items() if step.command.startswith(name)), step)
        for step in steps
    ]
    return [Step(re.sub(r"(?<=--port )\d+", lambda _: str(free_port()), each.command), each.program) for each in found]


def stable_parts(transcript: str) -> str:
    """A transcript without its volatile parts."""
    for pattern, name in _VOLATILE:
        transcript = pattern.sub(name, transcript)
    return transcript


def _environment_of_user(venv: Path, home: Path) -> dict[str, str]:
    """The environment of somebody who has activated a venv, without an index."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("RECALLOG_")}
    path = f"{venv / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return plain | {"PATH": path, "HOME": str(home), "COLUMNS": "120", "RECALLOG_INDEX": "off"}


@contextmanager
def _cluster(clone: Path) -> Iterator[tuple[str, str]]:
    """The addresses of the Kafka and the Redis that `make cluster` starts in the clone."""
    process = subprocess.Popen(
        ["make", "cluster"], cwd=clone, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        found = dict[str, str]()
        for line in process.stdout or ():
            if match := re.match(r" *export (RECALLOG_LEDGER|RECALLOG_VIEWS)='?([^'\n]+)'?", line):
                found[match[1]] = match[2]
            if len(found) == 2:
                break
        yield found["RECALLOG_LEDGER"], found["RECALLOG_VIEWS"]
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.wait(60)


def main(venv: Path) -> None:
    """Write the transcripts. `venv` is one in which a clean clone is installed."""
    TRANSCRIPTS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="recallog-transcripts-") as folder:
        home = Path(folder) / "home"
        home.mkdir()
        for page in TUTORIALS:
            clone, steps = Path(folder) / page.stem, steps_of(page)
            subprocess.run(["git", "clone", "--quiet", str(REPOSITORY), str(clone)], check=True)
            with ExitStack() as running:
                if page.stem == CLUSTER:
                    steps = with_addresses(steps, *running.enter_context(_cluster(clone)))
                text = run_steps(steps, clone, _environment_of_user(venv, home))
            (TRANSCRIPTS / f"{page.stem}.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
