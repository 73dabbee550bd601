"""Progress of long work; several partitions can report as one."""

from collections.abc import Callable, Mapping

Progress = Callable[[int, int], None]
"""Called with (offsets processed, offsets to process)."""


class CombinedProgress:
    """Adds up the progress of several partitions and reports the sums."""

    def __init__(self, progress: Progress | None, ends: Mapping[int, int]) -> None:
        self._progress = progress
        self._ends = dict(ends)
        self._done = dict.fromkeys(ends, 0)

    def of(self, partition: int) -> Progress:
        """The progress callback of one partition."""

        def advance(done: int, total: int) -> None:
            self._done[partition], self._ends[partition] = done, max(total, self._ends[partition])
            if self._progress is not None:
                self._progress(sum(self._done.values()), sum(self._ends.values()))

        return advance
