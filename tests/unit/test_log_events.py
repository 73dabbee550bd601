"""The setting for the number of events in the views, which is the same for all processes of a folder."""

from pathlib import Path

import pytest

from recallog import Memory, Settings
from recallog_schemas.errors import ViewsTooNew
from support.events import numbered, run

KEPT = 2_000


async def considered(home: Path, log_events: int) -> int:
    async with Memory.open(Settings(home=home, log_events=log_events)) as memory:
        return (await memory.salient("village", "baker")).considered


def test_salience_scores_all_events_of_the_views_and_the_views_follow_the_setting(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many(numbered(KEPT + 500))
        assert await considered(tmp_path, KEPT) == KEPT
        assert await considered(tmp_path, KEPT + 300) == KEPT + 300
        with pytest.raises(ViewsTooNew, match="RECALLOG_LOG_EVENTS"):
            await considered(tmp_path, KEPT)

    run(work())
