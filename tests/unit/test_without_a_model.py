"""Each memory model may be left out: without its folders and its lines in the lists, the rest works."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import recallog

ROOT = Path(__file__).parents[2]
SOURCES = ("schemas", "projections", "streams", "memory", "service")
LAYERS = ("schemas/recallog_schemas", "projections/recallog_projections", "memory/recallog")
LISTS = ("schemas/recallog_schemas/models/__init__.py", "memory/recallog/models/__init__.py")
AFTER = {each.name: each.after for each in recallog.MODELS}

SCRIPT = """
import asyncio
from recallog import Event, Memory, MODELS

async def main():
    async with Memory.open("memory") as memory:
        await memory.publish(Event(space="s", agent="a", kind="agent.spoke", payload={"text": "Fresh bread today"}))
        assert [each.text for each in (await memory.episodic("s", "a")).memories] == ["Fresh bread today"]
        assert [each.text for each in (await memory.recall("s", "a", "bread")).hits] == ["Fresh bread today"]
        assert [each.preview for each in (await memory.search("s", "a", "bread")).hits] == ["Fresh bread today"]
        assert [each.text for each in (await memory.salient("s", "a")).memories] == ["Fresh bread today"]
        assert not (await memory.react()).items
        assert not (await memory.admin.verify()).findings()
        await memory.admin.rebuild()
        assert (await memory.admin.status()).records == 1
    print(*(each.name for each in MODELS))

asyncio.run(main())
"""


def without(name: str) -> set[str]:
    """The model, and those that are built on it."""
    gone = {name}
    for model, after in AFTER.items():  # each stands after those that it is built on
        if gone & set(after):
            gone.add(model)
    return gone


@pytest.mark.parametrize("model", AFTER)
def test_without_a_model_and_those_built_on_it_the_others_work(model: str, tmp_path: Path) -> None:
    gone = without(model)
    for source in SOURCES:
        shutil.copytree(ROOT / source, tmp_path / source, ignore=shutil.ignore_patterns("__pycache__", "json"))
    for layer in LAYERS:
        for each in gone:
            shutil.rmtree(tmp_path / layer / "models" / each, ignore_errors=True)
    named = re.compile(rf'\.models\.({"|".join(gone)})\.|^    "({"|".join(gone)})",$')
    for path in (tmp_path / each for each in LISTS):
        path.write_text("".join(line for line in path.read_text().splitlines(keepends=True) if not named.search(line)))
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(str(tmp_path / source) for source in SOURCES),
        "RECALLOG_INDEX": "off",
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [each for each in AFTER if each not in gone]
