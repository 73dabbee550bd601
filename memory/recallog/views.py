"""Projections that are folded together, with all that keeps and reads them."""

from collections.abc import Sequence
from dataclasses import dataclass

from recallog.serving import Serving
from recallog_projections.projection import Projection
from recallog_projections.stores.store import Store
from recallog_streams.projector import Projector


@dataclass(frozen=True, slots=True)
class Views:
    """Projections that are folded together, and the store that keeps what they compute."""

    name: str
    """"built-in", "index", or the name of a user's projection."""
    store: Store
    projections: Sequence[Projection]
    builder: Projector
    """For workers and rebuilds. It needs no lock: the commit is fenced."""
    serving: Serving
    """For readers."""
