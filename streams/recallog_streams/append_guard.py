"""The guard of appends: no event is appended to a ledger that has lost records which views have processed.

An older copy of a ledger would give its next event a position that the views have for another event. Appends to it are
refused until an operator has put the right ledger back, or has dropped the views.
"""

import asyncio
import logging
import math
import time
from collections import defaultdict
from collections.abc import Collection, Sequence

from recallog_schemas import limits
from recallog_schemas.errors import LedgerMismatch, RecallogError
from recallog_streams.projector import Projector

_log = logging.getLogger("recallog.ledger")


class AppendGuard:
    """Compares a ledger with the views that were computed from it, before events are appended."""

    def __init__(self, views: Sequence[Projector]) -> None:
        """`views` are the projectors of all groups of views, used for reading only."""
        self._views = views
        self._compared: dict[int, tuple[object, float]] = {}
        """By partition: the opening of the ledger that passed the comparison, and the time."""
        self._comparing: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)
        """By partition: a thousand concurrent appends share one comparison, since their requests would block the
        cluster."""

    async def check(self, partitions: Collection[int], opening: object) -> None:
        """Raise `LedgerMismatch` if views are ahead of one of `partitions`. `opening` is that of the ledger.

        It compares once for each opening, and again after `limits.APPEND_CHECK_SECONDS`: a cluster may have lost
        records, and views may have been replaced. If either side cannot be read now, the append continues.
        """
        for partition in partitions:
            if not self._is_compared(partition, opening):
                async with self._comparing[partition]:
                    if not self._is_compared(partition, opening):
                        await self._compare(partition, opening)

    def _is_compared(self, partition: int, opening: object) -> bool:
        found, at = self._compared.get(partition, (None, -math.inf))
        return found == opening and time.monotonic() - at < limits.APPEND_CHECK_SECONDS

    async def _compare(self, partition: int, opening: object) -> None:
        began = time.monotonic()
        for views in self._views:
            try:
                await views.verify_not_ahead(partition)
            except LedgerMismatch as error:
                raise LedgerMismatch(f"nothing was written: {error}", position=error.position) from None
            except RecallogError as error:
                _log.debug("the views were not compared with the ledger before an append: %s", error)
        self._compared[partition] = opening, began
