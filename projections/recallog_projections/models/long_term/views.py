"""The projections of entries."""

from recallog_projections.models.long_term.due import Deduplications, Migrations, Retractions
from recallog_projections.models.long_term.projection import EntriesProjection
from recallog_projections.models.long_term.uses import Uses
from recallog_schemas import models


def make_entries() -> EntriesProjection:
    """The projection of entries. The module `judging` of a model that is built on entries decides what a plan archives;
    without such a model, plans archive nothing."""
    return EntriesProjection(next(iter(models.import_parts("recallog_projections", "judging")), None))


PROJECTIONS = (make_entries, Uses, Migrations, Retractions, Deduplications)
