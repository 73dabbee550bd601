"""All that is created in a memory's folder is for its owner alone, whatever the umask is."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from recallog_projections import private_files
from support.cli import environment_of

EVERYTHING = """
import asyncio, os, sys
from pathlib import Path
from recallog import Event, Memory, Settings
from flip.story import Topics
from support.toy_embedder import ToyEmbedder

home = Path(sys.argv[1])
os.umask(int(sys.argv[2], 8))


def settings(index):
    return Settings(home=home, index=index, index_idle_seconds=0.0)


async def main():
    async with Memory.open(settings("embedded"), projections=[Topics()]) as memory:
        texts = [f"The smith owes the miller {n} sacks." for n in range(30)]
        await memory.publish_many(
            [Event(space="village", agent="baker", kind="agent.spoke", payload={"text": text}) for text in texts]
        )
        await memory.catch_up()
        await memory.recall("village", "baker", "who owes the miller?", wait_index=True)
        await memory.admin.rebuild()
        await memory.admin.rebuild("index")
        await memory.admin.verify()
        await memory.react()
        print("open", flush=True)
        sys.stdin.readline()
    async with Memory.open(settings("embedded"), embedder=ToyEmbedder("toy")) as memory:
        await memory.admin.reindex(model="given")
        await memory.catch_up_index()


asyncio.run(main())
"""
CLI = [sys.executable, "-m", "recallog_service"]


def rights(folder: Path) -> dict[str, str]:
    """What others may do, by path: every entry in `folder` that is not for its owner alone, and the folder."""
    found = {}
    for path in (folder, *folder.rglob("*")):
        mode = stat.S_IMODE(path.lstat().st_mode)
        if mode != (private_files.FOLDER if path.is_dir() else private_files.FILE):
            found[str(path.relative_to(folder))] = oct(mode)
    return found


def cli(umask: int, *arguments: str | Path) -> None:
    subprocess.run(
        [*CLI, *map(str, arguments)],
        check=True,
        env=environment_of() | {"RECALLOG_INDEX": "off"},
        umask=umask,
        capture_output=True,
    )


@pytest.mark.parametrize("umask", [0o000, 0o777])
def test_everything_in_the_folder_of_a_memory_is_private(tmp_path: Path, umask: int) -> None:
    home = tmp_path / "above" / "memory"
    command = [sys.executable, "-c", EVERYTHING, str(home), oct(umask)[2:]]
    environment = environment_of(PYTHONPATH=os.pathsep.join(sys.path))
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "open\n"
        assert rights(home) == {}  # with all logs, locks and addresses of running processes
        names = {path.name for path in home.rglob("*")}
        assert {"ledger.db", "ledger.db-wal", "views.db-shm", "views.lock", "service.json", "service.log"} <= names
        process.stdin.write("\n")
        process.stdin.close()
        assert process.wait() == 0
    assert rights(home) == {}
    cli(umask, "keys", "create", "laptop", "--space", "*", "--agent", "*", "--home", home)
    cli(umask, "copy", home, tmp_path / "copied")
    cli(umask, "verify", "--home", home)
    assert rights(home) == {}
    assert rights(tmp_path / "copied") == {}
    assert stat.S_IMODE((tmp_path / "above").stat().st_mode) == private_files.FOLDER


def test_an_output_that_the_user_names_has_the_rights_of_the_umask(tmp_path: Path) -> None:
    home, output = tmp_path / "memory", tmp_path / "events.jsonl"
    cli(0o022, "publish", "village", "baker", "agent.spoke", "Bread!", "--home", home)
    cli(0o022, "export", "--output", output, "--home", home)
    assert stat.S_IMODE(output.stat().st_mode) == 0o644


def test_what_exists_keeps_the_rights_that_its_owner_gave_it(tmp_path: Path) -> None:
    home = tmp_path / "memory"
    cli(0o022, "publish", "village", "baker", "agent.spoke", "Bread!", "--home", home)
    home.chmod(0o750)
    (home / "ledger.db").chmod(0o640)
    cli(0o022, "publish", "village", "baker", "agent.spoke", "Rolls!", "--home", home)
    assert (stat.S_IMODE(home.stat().st_mode), stat.S_IMODE((home / "ledger.db").stat().st_mode)) == (0o750, 0o640)
