"""The list of the built-in projections."""

from collections.abc import Sequence
from typing import cast

from recallog_projections.models.beliefs.beliefs import Beliefs
from recallog_projections.models.beliefs.reflection import Reflection
from recallog_projections.models.consensus.projection import ConsensusProjection
from recallog_projections.models.conversations.projection import Conversations
from recallog_projections.models.facts.projection import Graph
from recallog_projections.models.items.projection import Items
from recallog_projections.models.long_term.projection import Entries
from recallog_projections.models.long_term.uses import Uses
from recallog_projections.models.stream.insights import Insights
from recallog_projections.models.tiers import judging
from recallog_projections.models.tiers.projection import Tiers
from recallog_projections.models.workspace import documents as workspace
from recallog_projections.projection import Projection
from recallog_projections.views.activity import Activity
from recallog_projections.views.clock import Clock
from recallog_projections.views.due import Due
from recallog_projections.views.episodic import Episodic
from recallog_projections.views.outline import OutlineProjection
from recallog_projections.views.own_due import NamesDue, OwnDue
from recallog_projections.views.salience import Salience
from recallog_projections.views.scene import Scene
from recallog_projections.views.settings import SettingsProjection
from recallog_schemas import limits

_BUILTIN = (
    Episodic
    | Salience
    | Reflection
    | Beliefs
    | Insights
    | Scene
    | Activity
    | OutlineProjection
    | Clock
    | ConsensusProjection
    | Conversations
    | Entries
    | Graph
    | Uses
    | Tiers
    | Items
    | Due
    | SettingsProjection
)


def projections(log_events: int = limits.LOG_EVENTS_KEPT) -> list[Projection]:
    """All built-in projections in the order of folding. Logs of events retain the newest `log_events`.

    Reflection follows episodic, whose log totals it reads; the graph, uses and tiers follow entries, and due work
    follows entries, items and conversations. Settings come last, so that the others apply those before the record.
    """
    return [
        Episodic(log_events), Salience(), Reflection(), Beliefs(), Insights(), Scene(), Activity(), OutlineProjection(),
        Clock(), ConsensusProjection(), *of_entries(), Graph(), Items(), Conversations(), Due(), SettingsProjection(),
    ]  # fmt: skip


def of_entries() -> list[Projection]:
    """The projections that decide together which entries live: a plan archives what nobody has touched."""
    return [Entries(judging), Uses(), Tiers()]


def of_index() -> list[Projection]:
    """The projections whose rows the index reads: those of entries, and the documents of workspaces."""
    return [*of_entries(), Items(workspace.NAMESPACE)]


def all_builtin(projections: Sequence[Projection]) -> bool:
    """Whether all of them are built in. Their rows are not checked when they are written."""
    return all(isinstance(projection, _BUILTIN) for projection in projections)


def with_settings(projection: Projection) -> list[Projection]:
    """A user's projection together with what it makes due, if it has a method `due`, and with the settings, which it
    may read to determine visibility."""
    names_due = callable(getattr(projection, "due", None))
    due: list[Projection] = [OwnDue(projection, cast(NamesDue, projection))] if names_due else []
    return [projection, *due, SettingsProjection()]
