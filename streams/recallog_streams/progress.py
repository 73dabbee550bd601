"""One progress of several partitions."""

from collections.abc import Mapping

from recallog_streams.projector import Progress


class CombinedProgress:
    """The progress of several partitions as one."""

    def __init__(self, progress: Progress | None, ends: Mapping[int, int]) -> None:
        self._progress = progress
        self._ends = dict(ends)
        self._done = dict.fromkeys(ends, 0)

    def of(self, partition: int) -> Progress:
        """The progress of one of them."""

        def advance(done: int, total: int) -> None:
            self._done[partition], self._ends[partition] = done, max(total, self._ends[partition])
            if self._progress is not None:
                self._progress(sum(self._done.values()), sum(self._ends.values()))

        return advance
