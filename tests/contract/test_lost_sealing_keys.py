"""A file of keys that is lost, damaged, or of an older copy is named, and all that needs no lost key is answered."""

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from recallog import Event, Memory, Settings, layout
from recallog_schemas.errors import StorageCorrupt
from support.events import event, run

SPACE, AGENT = "village", "baker"
Harm = Callable[[Path], None]


def said(number: int, subject: str | None) -> Event:
    payload = {"text": f"word {number}"}
    return event(id=f"e-{number}", space=SPACE, agent=AGENT, subject=subject, payload=payload)


def opened(home: Path) -> Memory:
    return Memory.open(Settings(home=home, index="off"))


def lose(home: Path) -> None:
    for path in home.glob(f"{layout.SEALING_KEYS}*"):
        path.unlink()


def damage(home: Path) -> None:
    data = bytearray((home / layout.SEALING_KEYS).read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    (home / layout.SEALING_KEYS).write_bytes(data)


def restore_older(home: Path) -> None:
    """The copy that was made before the second half was published."""
    lose(home)
    shutil.copy(home.parent / "older", home / layout.SEALING_KEYS)


HARMS = {"lost": lose, "damaged": damage, "older": restore_older}


@pytest.fixture(params=HARMS)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder whose keys came to harm. The keys of alice are in the older copy, those of bob are not."""
    home = tmp_path / "home"

    async def fill() -> None:
        async with opened(home) as memory:
            await memory.publish_many([said(0, "alice"), said(1, None)])
        shutil.copy(home / layout.SEALING_KEYS, tmp_path / "older")
        async with opened(home) as memory:
            await memory.publish_many([said(2, "bob"), said(3, None), said(4, "bob")])
            await memory.episodic(SPACE, AGENT)

    run(fill())
    shutil.copy(home / layout.SEALING_KEYS, tmp_path / "whole")
    HARMS[request.param](home)
    return home


async def texts(memory: Memory) -> list[str]:
    return [each.text for each in (await memory.episodic(SPACE, AGENT)).memories]


def test_status_and_verify_name_the_file(home: Path) -> None:
    async def work() -> None:
        async with opened(home) as memory:
            assert layout.SEALING_KEYS in (await memory.admin.status()).format()
            report = await memory.admin.verify()
            assert not report.clean
            (finding,) = report.ledger
            assert finding.problem == "key_missing"
            assert layout.SEALING_KEYS in report.format()
            assert "recallog rebuild" not in report.format()

    run(work())


def test_views_that_were_built_before_answer_as_before(home: Path) -> None:
    async def work() -> None:
        async with opened(home) as memory:
            assert await texts(memory) == [f"word {number}" for number in range(5)]
            await memory.publish(said(5, None))
            assert await texts(memory) == [f"word {number}" for number in range(6)]

    run(work())


def test_new_views_have_all_that_can_be_read_and_the_rest_once_the_keys_are_back(home: Path) -> None:
    async def work() -> None:
        (home / layout.views_file()).unlink()
        async with opened(home) as memory:
            shown = await texts(memory)
            assert {"word 1", "word 3"} <= {*shown} < {f"word {number}" for number in range(5)}
            assert {each.reason for each in (await memory.admin.dead_letters()).items} == {"key_missing"}
        lose(home)
        shutil.copy(home.parent / "whole", home / layout.SEALING_KEYS)
        async with opened(home) as memory:
            await memory.admin.retry_dead_letters()
            assert await texts(memory) == [f"word {number}" for number in range(5)]
            assert (await memory.admin.verify()).clean

    run(work())


def test_what_is_published_afterwards_can_be_read_unless_the_file_is_damaged(home: Path) -> None:
    async def work() -> None:
        async with opened(home) as memory:
            with suppress(StorageCorrupt):  # of the damaged file
                await memory.publish(said(6, "carol"))
                assert "word 6" in await texts(memory)
                return
            with pytest.raises(StorageCorrupt, match=f"{layout.SEALING_KEYS}.*Restore your copy"):
                await memory.publish(said(6, "carol"))

    run(work())
