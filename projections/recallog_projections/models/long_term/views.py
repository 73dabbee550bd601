"""The projections of entries."""

from typing import cast

from recallog_projections.models.long_term.due import Migrations, Retractions
from recallog_projections.models.long_term.planned import Plans
from recallog_projections.models.long_term.projection import Entries
from recallog_projections.models.long_term.uses import Uses
from recallog_projections.projection import Projection
from recallog_schemas import models


def projections() -> list[Projection]:
    return [*of_index(), Migrations(), Retractions()]


def of_index() -> list[Projection]:
    """Those that the index folds too.

    A plan archives what a model that is built on entries says, in its module `judging`. Without one, plans archive
    nothing.
    """
    judging = next(iter(models.parts("recallog_projections", "judging")), None)
    return [Entries(cast(Plans | None, judging)), Uses()]
