"""The scene of a space: the current state that all its agents see."""

from collections.abc import Sequence

from recallog.reading.read_session import Snapshot
from recallog.reading.readings import SpaceReading
from recallog.reading.subject import of_space
from recallog_projections.tables import RowKey
from recallog_projections.views import activity, scene, settings
from recallog_schemas.views import Remembered, SceneView


async def scene_of(reading: SpaceReading) -> SceneView:
    """The newest shared event of each of the space's scene kinds."""
    space = reading.space
    kinds: Sequence[str] = scene.DEFAULT_SCENE_KINDS
    while True:
        snapshot = await reading.snapshot([*scene.rows(space, kinds), RowKey(activity.SPACES.name, space)])
        set_to = scene.scene_kinds(snapshot.row(settings.SPACES, space))
        if set_to == kinds:
            shown = newest_of(snapshot, space, kinds)
            return SceneView(
                **of_space(snapshot, space),
                kinds=tuple(kinds),
                events=tuple(shown),
            )
        kinds = set_to


def newest_of(snapshot: Snapshot, space: str, kinds: Sequence[str]) -> list[Remembered]:
    """The newest shared event of each of `kinds`, in ledger order."""
    found = [snapshot.row(scene.NEWEST, space, "", kind) for kind in kinds]
    shown = sorted((one for one in found if one is not None), key=lambda one: one.offset)
    return [snapshot.make_remembered(one.offset, one.data, one.text) for one in shown]
