"""Paths under `/api/v1/memory` about entries: those that match a question, and the tiers that they are in."""

from typing import Annotated, Any

from pydantic import Field

from recallog import Memory
from recallog.models.tiers import parameters as tiers_parameters
from recallog.operations import parameters
from recallog.operations.facade import all_operations
from recallog.operations.operation import CheckedMethod
from recallog.operations.parameters import clamp_to
from recallog_schemas import limits
from recallog_schemas.models.tiers import limits as tiers_limits
from recallog_service.http.disclosure import Agent, Path, SomeTiers

_Retrieved = Annotated[int, clamp_to(1, limits.SEARCH_HITS_MAX), Field(description="Number of entries, 1 to 100.")]


class _Takes:
    """The parameters of the paths. Each method returns the arguments of its operation."""

    def of_agent(self, space: parameters.Space, *, agent: Agent = None) -> dict[str, Any]:
        """The tiers of an agent."""
        return {"space": space, "agent": agent}

    def retrieve(
        self,
        space: parameters.Space,
        query: parameters.RecallQuery,
        *,
        agent: Agent = None,
        tiers: SomeTiers = None,
        limit: _Retrieved = tiers_limits.RETRIEVED,
        min_similarity: tiers_parameters.RetrievedSimilarity = tiers_limits.RETRIEVED_SIMILARITY,
        strategy: tiers_parameters.TierStrategy = "weighted",
    ) -> dict[str, Any]:
        """The entries of an agent that match a question, by the strategy."""
        asked = {"space": space, "agent": agent, "query": query, "tiers": tiers, "limit": limit}
        return {**asked, "min_similarity": min_similarity, "strategy": strategy}

    def search(
        self,
        space: parameters.Space,
        q: parameters.RecallQuery,
        *,
        agent: Agent = None,
        tier: SomeTiers = None,
        limit: _Retrieved = limits.SEARCH_HITS,
    ) -> dict[str, Any]:
        """The entries of an agent that match a question, the most similar first."""
        return _Takes.retrieve(self, space, q, agent=agent, tiers=tier, limit=limit, strategy="comprehensive")

    def critiques(self, space: parameters.Space, *, agent: Agent = None, limit: _Retrieved = 20) -> dict[str, Any]:
        """The entries of the type `critique`, newest first."""
        return {"space": space, "agent": agent, "type": "critique", "limit": limit}


_OPERATIONS = all_operations(Memory)
_OF_AGENT = CheckedMethod(_Takes.of_agent)
_STATS = {"tier-stats": "stats", "archive-stats": "stats", "pressure": "pressure", "tiers": "pressure"}
PATHS = [
    *(Path("GET", name, "stats", _OPERATIONS[f"tiers.{of}"], _OF_AGENT) for name, of in _STATS.items()),
    *(Path("POST", name, "mutate", _OPERATIONS["tiers.consolidate"], _OF_AGENT) for name in ("consolidate", "cleanup")),
    Path("GET", "continuum/retrieve", "read", _OPERATIONS["tiers.retrieve"], CheckedMethod(_Takes.retrieve)),
    Path("GET", "search", "read", _OPERATIONS["tiers.retrieve"], CheckedMethod(_Takes.search)),
    Path("GET", "critiques", "read", _OPERATIONS["long_term.list"], CheckedMethod(_Takes.critiques)),
]
