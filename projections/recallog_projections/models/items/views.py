"""The projections of items."""

from recallog_projections.models.items.projection import ItemsProjection

PROJECTIONS = (ItemsProjection,)
