"""`eval`: measures recall, and what the views of a memory show, by questions with known answers."""

import hashlib
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from recallog import InvalidEvent, Memory, Settings
from recallog.retrieval.channels import DEFAULT_CHANNELS, RANKED, Channel
from recallog_eval import answerable, baselines, facts, inputs, locomo, locomo_questions, result, tables
from recallog_eval.locomo_questions import Misplaced, Question, Questions
from recallog_eval.memory_command import EPILOG, memory_command
from recallog_eval.metrics import HITS
from recallog_eval.result import (
    EMBEDDED,
    OFF,
    Answered,
    Ask,
    FileResult,
    Hit,
    Result,
    Run,
    Used,
)
from recallog_projections.index.embedders import registry
from recallog_service.cli import terminal
from recallog_service.cli.terminal import Json
from recallog_service.ingest import ingest

_group = typer.Typer(help="Measure recall, and what views keep, by questions with known answers.", no_args_is_help=True)


_group.command("memory", epilog=EPILOG)(memory_command)


def register(app: typer.Typer) -> None:
    app.add_typer(_group, name="eval")


_BATCH_EVENTS = 500
_WITH_FACTS = "with facts"
_FACTS = "facts"
"""The folder, in that of the memory without facts, of the one with facts."""
_DEFAULT_CHANNELS = tuple(channel for channel in RANKED if channel in DEFAULT_CHANNELS)


@dataclass(frozen=True, slots=True)
class _Input:
    """A file of questions, and the questions to ask about it."""

    name: str
    text: bytes
    sha256: str
    questions: Questions
    asked: tuple[Question, ...]
    misplaced: tuple[Misplaced, ...]
    earlier: FileResult | None
    """The runs of an earlier result about the same questions."""


@dataclass(frozen=True, slots=True)
class _Options:
    """The options that determine the runs."""

    index: str | None
    channels: tuple[Channel, ...] | None
    """None for the default channels."""
    name: str
    """The name of the requested run."""
    facts: bool
    ablations: bool
    baselines: bool


@dataclass(slots=True)
class _Asker:
    """Queries the memory, and collects the reasons of answers that used only keywords."""

    memory: Memory
    channels: Sequence[Channel] | None = None
    """None for the default channels."""
    degraded: list[str] = field(default_factory=list)

    async def ask(self, space: str, agent: str, question: str) -> list[Hit]:
        view = await self.memory.recall(space, agent, question, top_k=HITS, channels=self.channels)
        if view.degraded is not None:
            self.degraded.append(view.degraded)
        return [
            Hit(hit.event.id, hit.weak, tuple(hit.event.payload.get("sources") or ()) if hit.is_entry else ())
            for hit in view.hits
        ]


@_group.command(
    "locomo", epilog="Example: recallog eval locomo locomo10.json realtalk.json --out today.json --against before.json"
)
def locomo_command(
    files: inputs.Files,
    home: Annotated[
        Path | None,
        typer.Option(
            "--home",
            help="Folder of the memory, reused by the next run; of several files, each has a folder of its name in it.",
            show_default="a temporary folder",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File for all answers and figures.")] = None,
    against: inputs.Against = None,
    without: Annotated[
        list[str] | None,
        typer.Option(metavar="|".join(_DEFAULT_CHANNELS), help="Leave out this default channel; repeatable."),
    ] = None,
    with_facts: Annotated[
        bool,
        typer.Option(
            "--facts",
            help="Also run in a memory whose agents draw facts from the conversations: a fact counts as its sources.",
        ),
    ] = False,
    ablations: Annotated[
        bool,
        typer.Option(
            "--ablations",
            help="Also run with one channel fewer or more, and without the index.",
        ),
    ] = False,
    with_baselines: Annotated[
        bool,
        typer.Option("--baselines", help="Also rank single turns by BM25, and by the cosine of their vectors."),
    ] = False,
    elsewhere: Annotated[
        bool,
        typer.Option(
            "--elsewhere",
            help="Also ask each question in another conversation, where nothing is close: how often is that said?",
        ),
    ] = False,
    limit: inputs.Limit = None,
    index: inputs.Index = None,
    as_json: Json = False,
) -> None:
    """Measure how much of the evidence of LoCoMo's questions is recalled.

    Each file is ingested as by `recallog ingest --format locomo` into a separate
    memory. One of the speakers asks each question by `recall`. The report has, for
    each file and run, the mean fraction of the evidence (ids of turns) among the
    first 5, 10 and 20 hits, the mean reciprocal rank of the first one, and their
    change with its 95 % interval: from the default run, or with --against from the
    same run of an earlier result. It also has the share of the evidence that is
    marked as weak, and the latency of a query without indexing. The exit code is 1
    if answers used keywords only although an index was requested.
    """
    channels = _default_channels_without(without) if without else None
    if ablations and (without or index == OFF):
        raise typer.BadParameter("--ablations cannot be combined with --without or --index off")
    if len({file.stem for file in files}) < len(files):
        raise typer.BadParameter("two files have the same name", param_hint="FILE")
    texts = [inputs.read_file(file) for file in files]
    inputs.check_out(out)
    name = f"without {', '.join(without)}" if without else "default"
    options = _Options(
        index, channels, "index off" if index == OFF and not without else name, with_facts, ablations, with_baselines
    )

    async def work() -> Result:
        earlier = result.read(against) if against is not None else None
        each_given = [
            _input(file.name, text, limit, earlier, elsewhere=elsewhere)
            for file, text in zip(files, texts, strict=True)
        ]  # fmt: skip
        found = []
        for file, given in zip(files, each_given, strict=True):
            with inputs.open_folder(home if home is None or len(files) == 1 else home / file.stem) as folder:
                found.append(await _evaluated(given, folder, options))
        done = Result(files=tuple(found))
        if out is not None:
            result.write(done, out)
        return done

    done = terminal.run(work, as_json=as_json)
    if as_json:
        answers = {"files": {"__all__": {"runs": {"__all__": {"answers"}}}}}
        terminal.print_json(done.model_dump(mode="json", exclude=answers))
    else:
        tables.print_result(done, against)
    raise typer.Exit(1 if any(result.unexpectedly_degraded(file.runs[0]) for file in done.files) else 0)


@_group.command("weak", epilog="Example: recallog eval weak tests/data/answerable-questions.json --run minilm")
def weak_command(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="File of memories, of questions about them, and of other questions.")
    ],
    only: Annotated[
        list[str] | None,
        typer.Option("--run", metavar="|".join(answerable.RUNS), help="Only this run; repeatable.", show_default="all"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure how well "nothing close" tells what a memory does not know.

    For each language, its memories are remembered in a memory of their own: preferences
    and facts as entries, the others as turns of conversations. Then every question is
    asked by `recall`. The report has the precision and the recall of "nothing close",
    its share among the questions that the memory answers, and the share of their
    answers that are marked as weak; for the questions at even places, by which limits
    are chosen, and for those at odd ones, which only measure.
    """
    unknown = set(only or ()).difference(answerable.RUNS)
    if unknown:
        raise typer.BadParameter(f"{', '.join(sorted(unknown))} is not a run", param_hint="--run")
    text = inputs.read_file(file)

    async def work() -> list[answerable.Row]:
        languages = answerable.read(text)
        return [
            row for run in only or answerable.RUNS for row in answerable.rows(run, await answerable.ask(languages, run))
        ]

    done = terminal.run(work, as_json=as_json)
    if as_json:
        terminal.print_json({"rows": [row._asdict() for row in done]})
    else:
        tables.print_weak(done)


def _input(name: str, text: bytes, limit: int | None, earlier: Result | None, *, elsewhere: bool) -> _Input:
    """The questions to ask about a file. Raises `SettingsError` if `earlier` does not answer the same questions."""
    questions = locomo_questions.read(text)
    asked = inputs.spread(name, questions.asked, limit)
    misplaced = locomo_questions.misplaced(asked, questions.speakers) if elsewhere else ()
    if elsewhere and not misplaced:
        raise InvalidEvent(f"{name}: --elsewhere needs a file of several conversations")
    digest = hashlib.sha256(text).hexdigest()
    before = None if earlier is None else result.comparable(earlier, name, digest, asked)
    return _Input(name, text, digest, questions, asked, misplaced, before)


def _default_channels_without(names: Sequence[str]) -> tuple[Channel, ...]:
    if unused := set(names).difference(_DEFAULT_CHANNELS):
        raise typer.BadParameter(f"{', '.join(sorted(unused))} is not a default channel", param_hint="--without")
    channels = tuple(channel for channel in _DEFAULT_CHANNELS if channel not in names)
    if not channels:
        raise typer.BadParameter("no channel is left", param_hint="--without")
    return channels


async def _evaluated(given: _Input, folder: Path, options: _Options) -> FileResult:
    """All runs about one file."""
    await _ingest(given, folder)
    runs = []
    with terminal.bar(f"{given.name}: building views") as advance:
        async with Memory.open(settings := inputs.settings_of(folder, options.index), progress=advance) as memory:
            runs.append(await _run(given, options.name, _Asker(memory, options.channels), settings))
            with terminal.bar(f"{given.name}: asking elsewhere", "questions") as asked:
                elsewhere = await result.elsewhere_of(given.misplaced, _Asker(memory, options.channels).ask, asked)
            for channel in RANKED if options.ablations else ():
                name = f"{'without' if channel in DEFAULT_CHANNELS else 'with'} {channel}"
                changed = tuple(each for each in RANKED if (each in DEFAULT_CHANNELS) != (each == channel))
                runs.append(await _run(given, name, _Asker(memory, changed), settings))
        if options.ablations:
            async with Memory.open(settings := inputs.settings_of(folder, OFF), progress=advance) as memory:
                runs.append(await _run(given, "index off", _Asker(memory), settings))
    if options.facts:
        runs.insert(1, await _run_with_facts(given, folder / _FACTS, options))
    if options.baselines:
        runs += await _baselines(given, settings)
    return FileResult(
        file=given.name,
        file_sha256=given.sha256,
        skipped=given.questions.skipped,
        unresolved=given.questions.unresolved,
        elsewhere=elsewhere,
        runs=result.with_comparisons(runs, given.earlier),
    )


async def _ingest(given: _Input, folder: Path) -> None:
    with (
        terminal.bar(f"{given.name}: ingesting") as advance,
        terminal.bar(f"{given.name}: building views") as built,
    ):
        async with Memory.open(inputs.settings_of(folder, OFF), progress=built) as memory:
            done = await ingest(
                memory, locomo.read(given.text), unit="conversation", batch=_BATCH_EVENTS, progress=advance
            )  # fmt: skip
            if done.problems:
                raise InvalidEvent(f"{done.problems[0].message}. Use another --home, or leave it out")
            await memory.catch_up()


async def _run_with_facts(given: _Input, folder: Path, options: _Options) -> Run:
    """The requested run in a separate memory, in which the agents that ask have extracted facts."""
    events = [item.event for item in locomo.read(given.text) if item.event is not None]
    agents = {question.space: question.asker for question in given.questions.asked}
    async with Memory.open(settings := inputs.settings_of(folder, options.index)) as memory:
        with terminal.bar(f"{given.name}: drawing facts") as advance:
            drawn = await facts.draw(memory, events, agents, advance)
        run = await _run(given, _WITH_FACTS, _Asker(memory, options.channels), settings)
    used = run.used and run.used.model_copy(update={"facts": drawn})
    return run.model_copy(update={"used": used})


async def _run(given: _Input, name: str, asker: _Asker, settings: Settings) -> Run:
    with terminal.bar(f"{given.name}: indexing") as advance:
        await asker.memory.catch_up_index(advance)
    first = {question.space: question for question in reversed(given.asked)}
    for question in first.values():  # not measured: the first query loads the models
        await asker.ask(question.space, question.asker, question.text)
    asker.degraded.clear()
    answers = await _answers(given, name, asker.ask)
    used = Used(recallog=version("recallog"), index=settings.index or EMBEDDED, channels=asker.channels)
    return Run(name=name, used=used, summary=result.summary_of(answers, asker.degraded), answers=answers)


async def _baselines(given: _Input, settings: Settings) -> list[Run]:
    key = settings.embedder_api_key
    with closing(
        registry.embedder(settings.embedder, api_key=None if key is None else key.get_secret_value())
    ) as embedder:
        with terminal.bar(f"{given.name}: embedding turns", "turns") as advance:
            cosine = await baselines.cosine(given.questions.turns, embedder, advance)
        runs = []
        for name, ask in (("BM25", baselines.bm25(given.questions.turns)), ("cosine", cosine)):
            answers = await _answers(given, name, ask)
            runs.append(Run(name=name, used=None, summary=result.summary_of(answers), answers=answers))
        return runs


async def _answers(given: _Input, name: str, ask: Ask) -> tuple[Answered, ...]:
    with terminal.bar(f"{given.name}: {name}", "questions") as advance:
        return await result.answers_of(given.asked, ask, advance)
