"""`eval memory`: measures what the views of a memory keep of a conversation."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from recallog import Event, Memory
from recallog_eval import coverage, inputs, locomo_questions, replay, tables
from recallog_eval.coverage import (
    AFTER_ALL,
    AFTER_SESSION,
    MOMENTS,
    Coverage,
    CoverageFile,
    CoverageResult,
    Covered,
    Moment,
)
from recallog_eval.locomo_questions import ADVERSARIAL, Question
from recallog_eval.replay import SessionEnd
from recallog_service.cli import terminal
from recallog_service.cli.terminal import Json

EPILOG = "Example: recallog eval memory locomo10.json --index off --out today.json --against before.json"
SETTINGS: Mapping[str, Any] = {"reflection_threshold": 10}
"""The settings of an agent: a reflection after 10 events, as the memory model defines it for a memory stream."""


@dataclass(frozen=True, slots=True)
class _CoverageInput:
    """A file of conversations, and the questions to ask about it."""

    name: str
    text: bytes
    sha256: str
    asked: Sequence[Question]
    earlier: CoverageFile | None
    """The part of an earlier result about the same questions."""


def memory_command(
    files: inputs.Files,
    set_to: Annotated[
        str | None,
        typer.Option(
            "--settings",
            metavar="JSON",
            help="Settings of the agents, as `configure-agent` has them.",
            show_default='{"reflection_threshold": 10}',
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File for all questions and figures.")] = None,
    against: inputs.Against = None,
    limit: inputs.Limit = None,
    index: inputs.Index = None,
    as_json: Json = False,
) -> None:
    """Measure how much of the evidence of LoCoMo's questions the views of a memory show.

    Each conversation is replayed turn by turn for its first speaker:
    reflections, compactions and plans are made as they fall due, without a
    model unless RECALLOG_MODEL names one. The report has, for each view, its
    tokens, and the share of the questions of categories 1 to 4 of which it
    shows any turn, and all turns, of the evidence: after the conversation, and
    at the end of the session that has the last turn of the evidence. Beside it
    are the newest turns that have as many tokens, and the change from them to
    the view with its 95 % interval. Events and beliefs show the turns that they
    name; other texts show a turn if they quote the first half of it, at least
    20 characters.
    """
    settings = {**SETTINGS, **_read_settings(set_to)}
    texts = [inputs.read_file(file) for file in files]
    inputs.check_out(out)

    async def work() -> CoverageResult:
        earlier = coverage.read(against) if against is not None else None
        replayed = [_make_input(file.name, text, limit, earlier) for file, text in zip(files, texts, strict=True)]
        result = CoverageResult(files=tuple([await _evaluate(each, settings, index) for each in replayed]))
        if out is not None:
            out.write_text(result.model_dump_json() + "\n", encoding="utf-8")
        return result

    done = terminal.run(work, as_json=as_json)
    if as_json:
        questions = {"files": {"__all__": {"views": {"__all__": {"questions"}}}}}
        terminal.print_json(done.model_dump(mode="json", exclude=questions))
    else:
        tables.print_coverage(done, against)


def _read_settings(given: str | None) -> dict[str, Any]:
    """The object that `--settings` states. Raises `BadParameter`."""
    try:
        settings = json.loads(given or "{}")
    except ValueError as error:
        raise typer.BadParameter(f"not JSON: {error}", param_hint="--settings") from None
    if not isinstance(settings, dict):
        raise typer.BadParameter('not an object such as {"window": 20}', param_hint="--settings")
    return settings


def _make_input(name: str, text: bytes, limit: int | None, earlier: CoverageResult | None) -> _CoverageInput:
    """The questions to ask about a file. Raises `InvalidEvent`, and `SettingsError` if `earlier` does not ask the same
    ones."""
    answerable = [each for each in locomo_questions.read(text).asked if each.category != ADVERSARIAL]
    asked = inputs.spread(name, answerable, limit)
    digest = hashlib.sha256(text).hexdigest()
    before = None if earlier is None else coverage.find_comparable(earlier, name, digest, asked)
    return _CoverageInput(name, text, digest, asked, before)


async def _evaluate(given: _CoverageInput, settings: dict[str, Any], index: str | None) -> CoverageFile:
    agents = {question.space: question.asker for question in given.asked}
    events = replay.read_events(given.text, agents)
    asking = _Asking(given.asked, events)
    with inputs.open_folder(None) as folder, terminal.bar(f"{given.name}: replaying") as advance:
        async with Memory.open(inputs.settings_of(folder, index)) as memory:
            async for end in replay.replay(memory, events, agents, settings, advance):
                await asking.ask(memory, end)
    done = CoverageFile(file=given.name, file_sha256=given.sha256, settings=settings, views=asking.summarize())
    return done if given.earlier is None else coverage.compare(done, given.earlier)


class _Asking:
    """Asks the questions at their moments, and stores what the views show then."""

    def __init__(self, questions: Sequence[Question], events: Sequence[Event]) -> None:
        self._texts: dict[str, dict[str, str]] = defaultdict(dict)
        self._after: dict[tuple[str, str], list[Question]] = defaultdict(list)
        """By space and session: the questions whose evidence ends there."""
        self._of_space: dict[str, list[Question]] = defaultdict(list)
        self._covered: dict[tuple[Moment, str], list[Covered]] = defaultdict(list)
        session_of = dict[tuple[str, str], str]()
        place_of = dict[tuple[str, str], int]()
        for place, event in enumerate(events):
            if event.kind == replay.SPOKEN and event.session is not None:
                self._texts[event.space][event.id] = event.text
                session_of[event.space, event.id] = event.session
                place_of[event.space, event.id] = place
        for question in questions:
            last = max(question.evidence, key=lambda id_: place_of[question.space, id_])
            self._after[question.space, session_of[question.space, last]].append(question)
            self._of_space[question.space].append(question)

    async def ask(self, memory: Memory, end: SessionEnd) -> None:
        """Ask the questions whose moment is the end of this session."""
        asked = [(AFTER_SESSION, each) for each in self._after[end.space, end.session]]
        if end.is_last:
            asked += [(AFTER_ALL, each) for each in self._of_space[end.space]]
        if asked:
            await memory.catch_up_index()
        for moment, question in asked:
            of_question = await replay.ask(memory, end.space, question.asker, question.text)
            for shown in (*end.shown, *of_question):
                covered = coverage.cover(question, shown, end.newest, self._texts[end.space])
                self._covered[moment, shown.view].append(covered)

    def summarize(self) -> tuple[Coverage, ...]:
        """The figures of each view, by moment."""
        found = sorted(self._covered.items(), key=lambda item: MOMENTS.index(item[0][0]))
        return tuple(coverage.summarize(view, moment, covered) for (moment, view), covered in found)
