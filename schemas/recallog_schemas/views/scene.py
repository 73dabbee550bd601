"""The scene that all agents of a space share."""

from typing import ClassVar, Literal

from recallog_schemas.views.base import Bounded, OfSpace, Remembered


class SceneView(OfSpace, Bounded):
    """The scene that all agents of a space see: the newest event of each of its scene kinds, and its notes,
    oldest first."""

    list_field: ClassVar[str] = "events"
    kept: ClassVar[Literal["first", "last"]] = "last"

    kinds: tuple[str, ...]
    """The scene kinds of the space."""
    events: tuple[Remembered, ...]
    """The newest event of each of them, and the notes of the space's setting `scene_notes`, oldest first."""

    def format(self) -> str:
        """The texts of the scene's events, one per line; `(no scene)` if there are none."""
        return "\n".join(shown.quote_data(shown.text) for shown in self.events if shown.text) or "(no scene)"
