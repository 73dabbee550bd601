"""The tables of tiers: one row for each live or archived entry that carries a tier, one for each agent, and a log of
moves."""

import msgspec

from recallog_projections.tables import Log, Table
from recallog_schemas.models.tiers import limits as tiers_limits

CHANGED = "changed"
"""The reason why an entry did not move as planned: it has changed since the plan was made."""


class TierRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One live entry that carries a tier. How often it was read is in `uses.rows`, at the same address."""

    space: str
    owner: str
    id: str
    offset: int
    """The offset of the event that retained it."""
    at: int
    """When it was retained, or restored, in microseconds since 1970."""
    tier: str
    """fast, medium, slow or glacial."""
    importance: float
    """Its importance before decay: as its owner gave it, raised and lowered by outcomes since."""
    exempt: bool
    """Whether no plan may demote or archive it: it is pinned or red-lined."""
    surprise: float
    """The moving average of how much better its outcomes were than predicted, from 0 to 1."""
    successes: int
    """Reported successes since its last move."""
    reports: int
    """Reported successes and failures since its last move."""
    accesses: int
    """How often it had been read in all at its last move."""
    promoted_at: int | None
    """When it last moved to a faster tier, in microseconds since 1970."""
    plan: int | None
    """The ordinal of the plan that moved it last; None if it was not moved by a plan, or by its owner since."""
    touched: int
    """The offset of the last record that changed this row, for plans of earlier versions (`seen`)."""
    changes: int
    """How many records have changed this row."""


class AgentTiers(msgspec.Struct, frozen=True, omit_defaults=True):
    """The entries of one agent that carry a tier, and its plans."""

    fast: int = 0
    """Live entries in the tier FAST; the next fields are those of the other tiers."""
    medium: int = 0
    slow: int = 0
    glacial: int = 0
    surprise: float = 0.0
    """The sum of the surprise of these entries."""
    expired: int = 0
    """Entries that plans have archived because they were not read for too long."""
    evicted: int = 0
    """Entries that plans have archived because their tier had too many."""
    plans: int = 0
    """The number of its finished plans: the ordinal of the next one."""
    unfinished: bool = False
    """Whether that plan has begun, and its last part is missing."""
    planned_at: int | None = None
    """The time of the newest plan, in microseconds since 1970."""
    since: int = 0
    """The time from which the interval to the next plan counts, in microseconds since 1970: at most a day after each
    later event of the agent about entries."""
    full_at: int | None = None
    """When an entry entered a tier that has too many since the newest plan began, in microseconds since 1970: the
    earliest time, since one clock that is fast must not delay the plan."""
    due: str | None = None
    """The key of its row in `due.at`; None while it has no entries with a tier."""

    @property
    def entries(self) -> int:
        """Its live entries that carry a tier."""
        return self.fast + self.medium + self.slow + self.glacial


class Moves(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What one event has moved and archived."""

    event: str
    """Its id."""
    at: int
    """The time of the plan, or of the move by the owner, in microseconds since 1970."""
    promoted: int
    demoted: int
    archived: int
    rejected: tuple[str, ...]
    """The ids of entries that it names and that did not move: something had changed them since the plan was made."""

    @property
    def why(self) -> dict[str, str]:
        """See `recallog_projections.refusals.Refusal`."""
        return dict.fromkeys(self.rejected, CHANGED)


ROWS = Table("tiers.rows", TierRow)
"""At the address of the row in `entries.rows`: (space, owner, `entries.tables.key_of(offset)`)."""
ENDED = Table("tiers.ended", TierRow)
"""Archived entries at the same address, as they were when they were archived."""
AGENTS = Table("tiers.agents", AgentTiers)
"""At (space, agent)."""
MOVES = Log("tiers.moves", Moves, tiers_limits.MOVES_KEPT)
"""By (space, agent)."""
