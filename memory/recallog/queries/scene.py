"""The scene of a space: the current state that all its agents see."""

from collections.abc import Sequence

from recallog.reading.read_session import Snapshot
from recallog.reading.readings import SpaceReading
from recallog.reading.subject import of_space
from recallog_projections.tables import LogName, RowKey
from recallog_projections.views import activity, episodic, scene, settings
from recallog_schemas.views import Remembered, SceneView


async def scene_of(reading: SpaceReading) -> SceneView:
    """The newest shared event of each of the space's scene kinds, and its notes."""
    space = reading.space
    kinds: Sequence[str] = scene.DEFAULT_SCENE_KINDS
    logs: Sequence[tuple[LogName, int]] = ()
    while True:
        snapshot = await reading.snapshot([*scene.rows(space, kinds), RowKey(activity.SPACES.name, space)], logs)
        set_to = snapshot.row(settings.SPACES, space)
        needed = scene.note_logs(set_to, space)
        if scene.scene_kinds(set_to) == kinds and needed == logs:
            events = (*newest_of(snapshot, space, kinds), *notes_of(snapshot, space))
            shown = {event.position.offset: event for event in events}  # a note may be the newest event of its kind
            return SceneView(
                **of_space(snapshot, space),
                kinds=tuple(kinds),
                events=tuple(event for _, event in sorted(shown.items())),
            )
        kinds, logs = scene.scene_kinds(set_to), needed


def notes_of(snapshot: Snapshot, space: str) -> list[Remembered]:
    """The notes of the space's setting `scene_notes`, in ledger order. The snapshot has `scene.note_logs`."""
    left = dict(scene.scene_notes(snapshot.row(settings.SPACES, space)))
    found: list[Remembered] = []
    newest = snapshot.tail(episodic.SHARED, space).entries[-scene.NOTES_AMONG :] if left else ()
    for each in reversed(episodic.SHARED.decode_all(newest)):
        # Decoding an event takes much longer than this search in its bytes.
        if not any(kind.encode() in each.data for kind, count in left.items() if count):
            continue
        event = snapshot.make_remembered(each.offset, each.data, each.text)
        if left.get(event.event.kind):
            left[event.event.kind] -= 1
            found.append(event)
    return found[::-1]


def newest_of(snapshot: Snapshot, space: str, kinds: Sequence[str]) -> list[Remembered]:
    """The newest shared event of each of `kinds`, in ledger order."""
    found = [snapshot.row(scene.NEWEST, space, "", kind) for kind in kinds]
    shown = sorted((one for one in found if one is not None), key=lambda one: one.offset)
    return [snapshot.make_remembered(one.offset, one.data, one.text) for one in shown]
