"""The output of `ingest`: a table of files, and what was refused, skipped, cut and replaced."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from recallog.scrubbing import describe_counts
from recallog_schemas.kinds.trust import CLASSES, SourceClass
from recallog_schemas.views import count_noun
from recallog_service.cli import terminal
from recallog_service.ingest import Ingested, IngestedFile
from recallog_service.input_files import InputFile, InputFiles, holds_files

_NAMES_SHOWN = 5
_TYPES_SHOWN = 8
_COUNTS: Mapping[str, Callable[[IngestedFile], int]] = {
    "added": lambda each: each.added,
    "present": lambda each: each.known,
    "refused": lambda each: len(each.problems),
    "skipped": lambda each: sum(each.left_out.values()),
    "replaced": lambda each: sum(each.scrubbed.values()),
}
_BY_KIND = "if others wrote it, --trust import: no facts and no beliefs are made from imports"
_IMPORTED = "no facts and no beliefs are made from imports; if you trust all who wrote it, --trust user"
_ALWAYS = ("added", "present")
"""The counts that are shown even if all of them are 0."""


class Report:
    """Prints the results of one ingest. `names` are the files and folders that the user named."""

    def __init__(self, names: Sequence[str]) -> None:
        self._folder = Path(names[0]) if len(names) == 1 and holds_files(names[0]) else None

    def label(self, files: Sequence[InputFile]) -> str:
        return self._short(files[0].name) if len(files) == 1 else f"{len(files):,} files"

    def print_one(self, result: IngestedFile) -> None:
        self._print_problems(result, "")
        _print_total([result], f" (read as {result.read_as}, {count_noun(result.spaces, 'space')})")
        if result.stopped:
            terminal.note(
                "stopped there; the events before it are in the ledger. Correct it and run the same command again, or "
                "skip refused items with --keep-going",
                "",
            )
        elif result.kept_nothing:
            terminal.note("nothing of the file was kept", "red")
        elif not result.added + result.known:
            terminal.note("the file is empty")

    def print_all(self, results: Sequence[IngestedFile], inputs: InputFiles) -> None:
        chosen = Counter(each.chosen for each in results if each.chosen and each.added).most_common()
        for spaces, files in chosen[:_NAMES_SHOWN]:
            terminal.note(f"{count_noun(files, 'file')}: {spaces}")
        if (more := sum(files for _, files in chosen[_NAMES_SHOWN:])) > 0:
            terminal.note(f"{count_noun(more, 'more file')} in other spaces; recallog spaces lists them")
        for each in results:
            name = f"{self._short(each.file)}: "
            self._print_problems(each, name)
            if each.kept_nothing and each.read_as:
                terminal.note(f"{name}nothing of it was kept", "red")
        self._print_table(results)
        self._print_names("left out, because their format is not recognised", inputs.unrecognised)
        self._print_names("empty", inputs.blank)
        _print_total(results)

    def print_news(self, result: IngestedFile, *, as_json: bool) -> None:
        """Print what was added from a followed file."""
        if as_json:
            terminal.print_json(result)
            return
        name = f"{self._short(result.file)}: "
        self._print_problems(result, name)
        if result.added:
            replaced = f"; replaced {describe_counts(result.scrubbed)}" if result.scrubbed else ""
            terminal.print_lines(f"{name}{result.added:,} added{replaced}")

    def _print_problems(self, result: IngestedFile, name: str) -> None:
        for problem in result.problems:
            terminal.note(f"{name}{problem.message}", "red")
        for cut in result.cut:
            terminal.note(f"{name}{cut.message}")
        if result.ahead:
            terminal.note(f"{name}{result.ahead:,} of them are dated more than a day ahead; they set no clock")
        if result.other_times:
            terminal.note(_other_times(result))

    def _print_table(self, results: Sequence[IngestedFile]) -> None:
        """Print a line for each file that added something."""
        news = [each for each in results if each.added or each.problems or each.kept_nothing]
        counts = {name: count for name, count in _COUNTS.items() if name in _ALWAYS or any(map(count, news))}
        rows = [
            (self._short(each.file), each.read_as or "-", *(f"{count(each):,}" for count in counts.values()))
            for each in news
        ]
        if rows:
            from recallog_service.cli import console

            console.print_table(("file", "format", *counts), rows, numbers=counts)
        if rest := len(results) - len(news):
            terminal.print_lines(f"{count_noun(rest, 'file')} with nothing new")

    def _print_names(self, why: str, names: Sequence[str]) -> None:
        if names:
            more = len(names) - _NAMES_SHOWN
            rest = f" and {more:,} more, which --json lists" if more > 0 else ""
            terminal.note(f"{why}: {', '.join(map(self._short, names[:_NAMES_SHOWN]))}{rest}")

    def _short(self, name: str) -> str:
        """The path relative to the folder that the user named, else to the home of the user."""
        path = Path(name)
        if self._folder is not None and path != self._folder and path.is_relative_to(self._folder):
            return str(path.relative_to(self._folder))
        home = Path.home()
        return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else name


def _print_total(results: Sequence[IngestedFile], more: str = "") -> None:
    left_out, scrubbed = Counter[str](), Counter[str]()
    for each in results:
        left_out.update(each.left_out)
        scrubbed.update(each.scrubbed)
    added, known = sum(each.added for each in results), sum(each.known for each in results)
    refused = sum(len(each.problems) for each in results)
    terminal.print_lines(
        f"Total: {added:,} added, {known:,} already present{f', {refused:,} refused' if refused else ''}{more}"
    )
    if left_out:
        types = [f"{count:,} {name}" for name, count in left_out.most_common(_TYPES_SHOWN)]
        if len(left_out) > _TYPES_SHOWN:
            types.append(f"{count_noun(len(left_out) - _TYPES_SHOWN, 'more type')}, which --json lists")
        of = next(iter(left_out)) if len(left_out) == 1 else ", ".join(types)
        terminal.print_lines(f"Skipped {count_noun(left_out.total(), 'record')} ({of})")
    if scrubbed:
        terminal.print_lines(f"Replaced {describe_counts(scrubbed)}")
    if classes := sum((Counter(each.classes) for each in results), Counter[SourceClass]()):
        counts = ", ".join(f"{classes[name]:,} {name}" for name in CLASSES if classes[name])
        terminal.print_lines(f"Sources: {counts} ({_IMPORTED if classes['import'] else _BY_KIND})")


def _other_times(result: Ingested) -> str:
    first = result.first_other_times[0]
    events = count_noun(result.other_times, "known event has", "known events have")
    return (
        f"{events} another time in the ledger, which counts; the first is {first.id}: {first.at.isoformat()} in the "
        f"file, {first.at_in_ledger.isoformat()} in the ledger at {first.position}. Was the file exported again with "
        "other times?"
    )
