"""How much of the evidence of questions the views of a memory show, compared with the same number of tokens of the
newest turns.

A question is asked at two moments: after its conversation, and at the end of the session with the last turn of its
evidence. A result file is a `CoverageResult` as JSON; it has every question.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from recallog import SettingsError
from recallog.views import View
from recallog_eval import metrics
from recallog_eval.locomo_questions import Question
from recallog_eval.metrics import Paired
from recallog_eval.shown import NewestTurns, Shown

Moment = Literal["after the conversation", "after the session"]
AFTER_ALL: Moment = "after the conversation"
AFTER_SESSION: Moment = "after the session"
MOMENTS = (AFTER_ALL, AFTER_SESSION)
MEASURES = ("any", "all")


class Covered(View):
    """How much of the evidence of one question a view shows."""

    space: str
    number: int
    """Ordinal of the question in its conversation, from 1."""
    evidence: int
    """The number of turns that answer it."""
    shown: int
    """The number of these turns that the view shows."""
    newest: int
    """The number of these turns that are among the newest turns with the same number of tokens."""
    tokens: int
    """The tokens of the view."""

    def values(self) -> dict[str, float]:
        """The value of each of `MEASURES` for the view: 1 if it shows any turn of the evidence, and all of them."""
        return self._values(self.shown)

    def newest_values(self) -> dict[str, float]:
        """Like `values`, for the newest turns."""
        return self._values(self.newest)

    def _values(self, shown: int) -> dict[str, float]:
        return {"any": float(shown > 0), "all": float(shown == self.evidence)}


class Coverage(View):
    """The figures of one view at one moment; shares of questions are from 0 to 1."""

    view: str
    moment: Moment
    tokens: float
    """The mean number of tokens of the view."""
    shares: dict[str, float]
    """For each of `MEASURES`, the share of questions."""
    newest: dict[str, float]
    """The same for the newest turns with the same number of tokens."""
    change: dict[str, Paired]
    """From the newest turns to the view, question by question."""
    against_earlier: dict[str, Paired] | None = None
    """From an earlier result to this one; None if there is none."""
    questions: tuple[Covered, ...]


class CoverageFile(View):
    """The views of the conversations of one file."""

    file: str
    file_sha256: str
    settings: dict[str, Any]
    """The settings of the agents whose memories were read."""
    views: tuple[Coverage, ...]


class CoverageResult(View):
    """The result of `eval memory`."""

    files: tuple[CoverageFile, ...]

    def find(self, file_sha256: str) -> CoverageFile | None:
        """The part about the file with this content."""
        return next((each for each in self.files if each.file_sha256 == file_sha256), None)


def cover(question: Question, shown: Shown, newest: NewestTurns, texts: Mapping[str, str]) -> Covered:
    """How much of the evidence of a question a view and the newest turns show. `texts` has the text of each turn."""
    evidence = set(question.evidence)
    return Covered(
        space=question.space,
        number=question.number,
        evidence=len(evidence),
        shown=len(shown.find_shown(evidence, texts)),
        newest=len(evidence & newest.within(shown.tokens)),
        tokens=shown.tokens,
    )


def summarize(view: str, moment: Moment, questions: Sequence[Covered]) -> Coverage:
    """The figures of at least one question."""
    found = [each.values() for each in questions]
    newest = [each.newest_values() for each in questions]
    return Coverage(
        view=view,
        moment=moment,
        tokens=sum(each.tokens for each in questions) / len(questions),
        shares={name: _mean([each[name] for each in found]) for name in MEASURES},
        newest={name: _mean([each[name] for each in newest]) for name in MEASURES},
        change=_compare(newest, found),
        questions=tuple(questions),
    )


def find_comparable(
    earlier: CoverageResult, file: str, file_sha256: str, questions: Sequence[Question]
) -> CoverageFile:
    """The part of `earlier` that asks exactly these questions about a file with this content.

    Raises `SettingsError` if there is none. `file` is the name of the file for the message.
    """
    found = earlier.find(file_sha256)
    if found is None:
        raise SettingsError(
            f"the earlier result is of other files: {', '.join(each.file for each in earlier.files)}, not of this "
            f"content of {file}. Evaluate the same file, or create that result again with --out"
        )
    asked = sorted((each.space, each.number) for each in questions)
    if any(sorted((each.space, each.number) for each in view.questions) != asked for view in found.views):
        raise SettingsError(
            f"the earlier result asks other questions about {file}. Run with the same --limit, or create that "
            "result again with --out"
        )
    return found


def compare(now: CoverageFile, before: CoverageFile) -> CoverageFile:
    """`now` with the change of each view since `before`, which asks the same questions."""
    earlier = {(each.view, each.moment): each for each in before.views}
    changed = [
        each if was is None else each.model_copy(update={"against_earlier": _change(was, each)})
        for each in now.views
        for was in [earlier.get((each.view, each.moment))]
    ]
    return now.model_copy(update={"views": tuple(changed)})


def read(path: Path) -> CoverageResult:
    """Read a result file. Raises `SettingsError` if it cannot be read or is not a result."""
    try:
        return CoverageResult.model_validate_json(path.read_bytes())
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "JSON"
        raise SettingsError(f"{path} is not a result of `eval memory`: {where}: {first['msg']}") from None


def _change(before: Coverage, after: Coverage) -> dict[str, Paired]:
    return _compare([each.values() for each in before.questions], [each.values() for each in after.questions])


def _compare(before: Sequence[Mapping[str, float]], after: Sequence[Mapping[str, float]]) -> dict[str, Paired]:
    return {name: metrics.paired([one[name] for one in before], [one[name] for one in after]) for name in MEASURES}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
