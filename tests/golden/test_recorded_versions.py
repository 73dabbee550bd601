"""What earlier versions wrote is opened, verified, rebuilt and asked: it holds the same, and nothing is lost.

`recorded/<version>` was written by `golden.record` with the code of that version. A digest or an answer may differ here
only on purpose: `CHANGED` lists each such difference with its reason.
"""

import asyncio
import base64
import json
import lzma
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from flip.folders import copy
from flip.memories import in_process
from flip.story import Topics
from golden.record import (
    ANSWERS,
    DIGESTS,
    FOLDER,
    RECORDED,
    TOPIC,
    answers,
    digests_of_folder,
    digests_of_topic,
    index,
    settings_of,
    values_of,
)
from recallog import Memory
from recallog_schemas import codec
from support.toy_embedder import ToyEmbedder

pytestmark = pytest.mark.models("all")

VERSIONS = sorted(path.name for path in RECORDED.iterdir())
CHANGED: Mapping[str, Mapping[str, str]] = {
    "0.1.0": {
        "agent_settings": "the setting `prices` had no effect, and is gone",
        "tiers.retrieve": "entries without a tier are found too",
        "entries.digests": "a row lists all entries of which one may duplicate another by some rule",
        "entries.statements": "facts and lessons are listed by what they say something of",
        "catalogue": "events that compare texts state their rule",
        "kinds": "the same",
        "conversations.refusals": "removals and compactions that change nothing are noted",
        "conversations.messages": "messages are stored in chunks",
        "conversations.newest": "messages that do not fill a chunk yet, and how much was said",
        "conversations.said": "the same",
        "consensus.refusals": "links between consensuses that are refused are noted",
        "tiers.rows": "a row counts its changes, which plans name",
        "tiers.ended": "archived entries keep their tier, with which they are restored",
        "clock.now": "each agent has the time of what it sees, and the space that of what all see",
        "context": "working memory is shown as soon as an agent has blocks",
        "working.render": "contents are indented, so that none can look like another block",
    }
}
"""By version: tables and questions whose digest or answer is another one since, each with the reason."""


@pytest.fixture(scope="module", params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def unpacked(version: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder as it was recorded. Do not write to it."""
    folder = tmp_path_factory.mktemp("recorded") / "home"
    with tarfile.open(RECORDED / version / FOLDER) as packed:
        packed.extractall(folder, filter="data")
    return folder


@pytest.fixture
def home(unpacked: Path, tmp_path: Path) -> Path:
    copy(unpacked, tmp_path / "home")
    return tmp_path / "home"


def recorded_digests(version: str, what: str) -> dict[str, str]:
    found: dict[str, dict[str, str]] = json.loads((RECORDED / version / DIGESTS).read_text())
    return found[what]


def differences(version: str, recorded: Mapping[str, str], found: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """What is recorded, and what is found, where the two differ and are not expected to."""
    allowed = CHANGED.get(version, {})
    return {
        name: (recorded.get(name, "nothing"), found.get(name, "nothing"))
        for name in recorded.keys() | found.keys()
        if recorded.get(name) != found.get(name) and name not in allowed
    }


def test_every_kind_and_every_payload_is_recorded(unpacked: Path, version: str) -> None:
    kinds = {codec.decode(value).kind for value in asyncio.run(values_of(unpacked_copy(unpacked)))}
    assert len(kinds) >= 45


def unpacked_copy(unpacked: Path) -> Path:
    target = unpacked.with_name("asked")
    if not target.exists():
        copy(unpacked, target)
    return target


def test_the_folder_opens_with_its_views_clean(home: Path, version: str) -> None:
    found = asyncio.run(digests_of_folder(home))  # fails on any finding of `verify`
    assert differences(version, recorded_digests(version, "folder"), found) == {}


def test_a_rebuild_gives_the_same_rows(home: Path, version: str) -> None:
    async def rebuild() -> None:
        async with Memory.open(settings_of(home), projections=[Topics()]) as memory:
            await memory.admin.rebuild()

    asyncio.run(rebuild())
    found = asyncio.run(digests_of_folder(home))
    assert differences(version, recorded_digests(version, "folder"), found) == {}


def test_the_ledger_alone_gives_the_same_rows(home: Path, version: str) -> None:
    for path in home.glob("views*"):
        path.unlink()
    found = asyncio.run(digests_of_folder(home))
    assert differences(version, recorded_digests(version, "folder"), found) == {}


def test_every_question_has_the_answer_that_was_recorded(home: Path, version: str) -> None:
    recorded = json.loads(lzma.decompress((RECORDED / version / ANSWERS).read_bytes()))
    assert len(recorded) > 100
    found = asyncio.run(answers(home, [(each["operation"], each["arguments"]) for each in recorded]))
    allowed = CHANGED.get(version, {})
    for before, now in zip(recorded, found, strict=True):
        if before["operation"] not in allowed:
            assert added_to(before["answer"], now["answer"]) == [], (before["operation"], before["arguments"])


def added_to(before: Any, now: Any, path: str = "") -> list[str]:
    """Where an answer differs from the recorded one. Fields may have been added."""
    if isinstance(before, dict) and isinstance(now, dict):
        return [
            difference
            for key, value in before.items()
            for difference in (added_to(value, now[key], f"{path}.{key}") if key in now else [f"{path}.{key} is gone"])
        ]
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        pairs = enumerate(zip(before, now, strict=True))
        return [each for number, (old, new) in pairs for each in added_to(old, new, f"{path}[{number}]")]
    return [] if before == now else [f"{path}: {before!r} was recorded, and is {now!r}"]


def test_the_index_is_used_and_no_text_is_embedded_again(home: Path, version: str) -> None:
    embedder = ToyEmbedder()

    async def recall() -> tuple[bool, int]:
        async with in_process(home, embedder=embedder) as memory:
            found = await memory.recall("village", "baker", "who owes me flour?", wait_index=True)
            return found.degraded is None, len(found.hits)

    by_meaning, hits = asyncio.run(recall())
    assert by_meaning
    assert hits > 0
    assert embedder.embedded <= 2  # the question, and what it is compared with


def test_a_rebuilt_index_takes_its_vectors_from_the_old_one(home: Path, version: str) -> None:
    embedder = ToyEmbedder()

    async def reindex() -> None:
        async with in_process(home, follow=False, embedder=embedder) as memory:
            await memory.admin.rebuild("index")

    asyncio.run(reindex())
    asyncio.run(index(home, embedder))
    assert embedder.embedded <= 2


@pytest.fixture
def partition(version: str) -> list[bytes]:
    return [base64.b64decode(line) for line in lzma.decompress((RECORDED / version / TOPIC).read_bytes()).split(b"\n")]


def test_a_partition_of_a_topic_gives_the_same_rows_and_dead_letters(partition: list[bytes], version: str) -> None:
    found = asyncio.run(digests_of_topic(partition))
    assert differences(version, recorded_digests(version, "topic"), found) == {}
