"""The scene that all agents of a space share."""

from recallog_schemas.views.base import ComputedAt, Remembered, one_line


class SceneView(ComputedAt):
    """What all agents of a space have before their eyes: the newest event of each of its scene kinds, oldest first."""

    space: str
    kinds: tuple[str, ...]
    events: tuple[Remembered, ...]

    def format(self) -> str:
        """The scene in words, one event a line; `(no scene)` where there is none."""
        return "\n".join(one_line(shown.text) for shown in self.events if shown.text) or "(no scene)"
