"""Paths under `/api/v1/memory` that show and move the entries in tiers."""

from typing import Any

from recallog import Memory
from recallog.operations import parameters
from recallog.operations.facade import all_operations
from recallog.operations.operation import CheckedMethod
from recallog_service.http.disclosure import Agent, Path


class _Takes:
    """The parameters of the paths. Each method returns the arguments of its operation."""

    def tier_stats(self, space: parameters.Space, *, agent: Agent = None) -> dict[str, Any]:
        """Number of entries of an agent in each tier, and their moves."""
        return {"space": space, "agent": agent}

    def pressure(self, space: parameters.Space, *, agent: Agent = None) -> dict[str, Any]:
        """How full the tiers of an agent are."""
        return {"space": space, "agent": agent}

    def consolidate(self, space: parameters.Space, *, agent: Agent = None) -> dict[str, Any]:
        """Move and archive the entries of an agent that have a tier."""
        return {"space": space, "agent": agent}


_OPERATIONS = all_operations(Memory)
PATHS = [
    Path("GET", "tier-stats", "stats", _OPERATIONS["tiers.stats"], CheckedMethod(_Takes.tier_stats)),
    Path("GET", "pressure", "stats", _OPERATIONS["tiers.pressure"], CheckedMethod(_Takes.pressure)),
    Path("POST", "consolidate", "mutate", _OPERATIONS["tiers.consolidate"], CheckedMethod(_Takes.consolidate)),
]
