"""Progress bars on a terminal. rich's progress modules are imported only when a bar is shown."""

import sys
import time
from typing import Any, TextIO, cast

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from recallog_schemas.views import one_line
from recallog_schemas.visible import visible

_REDRAWN_SECONDS = 0.1


class ProgressBar:
    """A progress bar on a terminal, on stderr, shown until `stop`.

    One bar is shown at a time. It disappears when anything is printed, and reappears below it with the next progress,
    so that it neither alters printed text nor moves it to another stream.
    """

    def __init__(self, label: str, unit: str) -> None:
        texts = (TextColumn("{task.description}", markup=False), TextColumn(unit))
        columns = (texts[0], BarColumn(), MofNCompleteColumn(), texts[1], TimeRemainingColumn())
        _streams.hold()
        console = Console(file=_streams.err, highlight=False, emoji=False)
        # A redrawing thread could draw the bar in the middle of a printed line.
        self._progress = Progress(
            *columns, console=console, transient=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
        )
        self._task = self._progress.add_task(visible(one_line(label)), total=None)
        self._drawn_at = 0.0

    def update(self, done: int, total: int) -> None:
        # None leaves the total as it is: unknown, or the former one.
        self._progress.update(self._task, completed=done, total=total if done < total else None)
        now = time.monotonic()
        if now - self._drawn_at >= _REDRAWN_SECONDS or done >= total:
            self._drawn_at = now
            _streams.show(self._progress)

    def stop(self) -> None:
        _streams.release()


class _Streams:
    """Standard output and standard error while bars are shown: a write to a terminal hides the bar first."""

    def __init__(self) -> None:
        self._bars = 0
        self._shown: Progress | None = None
        self._line_is_open = False
        """Whether the last text that was written to a terminal did not end its line."""
        self._streams: tuple[TextIO, TextIO] = (sys.stdout, sys.stderr)

    @property
    def err(self) -> TextIO:
        """Standard error itself."""
        return self._streams[1]

    def hold(self) -> None:
        """Register one more bar."""
        self._bars += 1
        if self._bars == 1:
            self._streams = (sys.stdout, sys.stderr)
            sys.stdout, sys.stderr = (self._hiding(stream) for stream in self._streams)

    def release(self) -> None:
        """Unregister a bar."""
        self.hide()
        self._bars -= 1
        if self._bars == 0:
            sys.stdout, sys.stderr = self._streams

    def show(self, progress: Progress) -> None:
        """Draw the bar, unless its line contains unfinished text."""
        if self._line_is_open:
            return
        if self._shown is not progress:
            self.hide()
            self._shown = progress
            progress.start()
        progress.refresh()

    def hide(self) -> None:
        if self._shown is not None:
            self._shown.stop()
            self._shown = None

    def write(self, stream: TextIO, text: str) -> int:
        self.hide()
        if text:
            self._line_is_open = not text.endswith("\n")
        return stream.write(text)

    def _hiding(self, stream: TextIO) -> TextIO:
        return cast(TextIO, _HidingBars(stream, self)) if stream.isatty() else stream


class _HidingBars:
    """A stream that hides the bar before each write."""

    def __init__(self, stream: TextIO, streams: _Streams) -> None:
        self._stream = stream
        self._streams = streams

    def write(self, text: str) -> int:
        return self._streams.write(self._stream, text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


_streams = _Streams()
