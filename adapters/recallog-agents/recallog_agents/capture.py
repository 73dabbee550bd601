"""Writes the transcripts of sessions to the ledger, which hooks noted in the spool, by the readers of `recallog
ingest`.

Therefore the events have the same ids as after an ingest of the same files, whichever comes first. A transcript is read
again if it has grown since, with or without a hook: an agent may write its last words after its last hook.
"""

import asyncio
import json
import os
import re
import time
from contextlib import suppress
from glob import escape
from pathlib import Path
from typing import Any

from recallog import IdConflict, InvalidEvent, Memory, RecallogError
from recallog_agents import spool
from recallog_agents.clients import located
from recallog_service.formats import Item, Options, Source, registry
from recallog_service.ingest import SHARED, ingest, share_space
from recallog_service.input_files import input_files

EVERYWHERE = "everywhere"
"""The space of entries that apply to all projects."""

_SHARED_TOO = frozenset({"memory.retained", "experience.recorded"})
"""The kinds of events that agents write by the tools of MCP."""
_SHARING = "recallog-agents/shared"
_WAIT_SECONDS = 7 * 24 * 3600.0
"""How long a session waits for a transcript that does not exist yet."""
_KNOWN_MAX = 500
"""The number of transcripts whose sizes are kept, so that they are checked again."""
_SHARE = 0.1
"""The share of the time that reading a transcript at tool uses may take."""
_BATCH = 500
_FOR_ALL = re.compile(
    r"\s*remember[ ,]+(?:everywhere|(?:in|for|across) all (?:my |our )?projects)\b[\s:,-]*(?:that\s+)?(?P<text>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
"""Words with which a user states something for all projects."""


class Capture:
    """Reads transcripts into one memory."""

    def __init__(self, memory: Memory, home: Path) -> None:
        self._memory = memory
        self._home = home
        self._state = Path(spool.place(str(home), "read.json"))
        self._sizes: dict[str, int] = _sizes_in(self._state)
        """By transcript: its size when it was read."""
        self._rests: dict[str, float] = {}
        """By transcript: the time until which it is not read at tool uses."""
        self._shared: set[str] = set()
        self.is_stuck = False
        """Whether the last drain had to stop."""
        self.spaces: dict[str, str] = {}
        """The spaces of transcripts that were read."""

    async def drain(self) -> bool:
        """Read the records that wait. Returns whether something was added."""
        before = dict(self._sizes)
        added = self.is_stuck = False
        for path, record in spool.claim(str(self._home)).items():
            try:
                added |= await self._read_record(path, record)
            except InvalidEvent as error:  # a file of another program
                spool.log(str(self._home), f"not captured: {record['transcripts']}: {error}")
                spool.done(path)
            except (RecallogError, OSError) as error:  # it stays in the spool, and others would fail too
                spool.log(str(self._home), f"not captured yet: {record['transcripts']}: {error}")
                self.is_stuck = True
                return added
        for transcript, size in before.items():
            if (
                _size(transcript) not in (None, size)
                and self._sizes.get(transcript) == size
                and self._is_due(transcript)
            ):
                added |= await self._read(transcript)
        if self._sizes != before:
            self._save()
        return added

    async def _read_record(self, path: str, record: dict[str, Any]) -> bool:
        """Read the transcripts of a record, and remove it from the spool, unless it has to wait."""
        added, waits = False, False
        for transcript in _chosen(record["transcripts"]) or _rollouts(record):
            size = _size(transcript)
            if size is None:
                waits |= not self._is_own(transcript) and _age(path) < _WAIT_SECONDS
            elif record.get("tool") and not self._is_due(transcript):
                waits = True
            elif size != self._sizes.get(transcript):
                added |= await self._read(transcript)
        if not waits:
            spool.done(path)
        return added

    def _is_own(self, transcript: str) -> bool:
        return transcript.startswith(spool.place(str(self._home), spool.TRANSCRIPTS))

    def _is_due(self, transcript: str) -> bool:
        return time.monotonic() >= self._rests.get(transcript, 0.0)

    async def _read(self, transcript: str) -> bool:
        began = time.monotonic()
        size, items, unit = await asyncio.to_thread(_items, transcript)
        for item in items:
            if item.event is not None:
                self.spaces.setdefault(transcript, item.event.space)
                await self._share(item.event.space)
        result = await ingest(self._memory, items, unit=unit, batch=_BATCH, keep_going=True)
        await self._retain_for_all(items)
        for problem in result.problems[:3]:
            spool.log(str(self._home), f"{transcript}: {problem.message}")
        self._sizes.pop(transcript, None)
        self._sizes[transcript] = size
        self._rests[transcript] = time.monotonic() + (time.monotonic() - began) * (1 / _SHARE - 1)
        return result.added > 0

    async def _share(self, space: str) -> None:
        """Let the agents of a space see each other's work, unless the user has changed that setting."""
        if space in self._shared:
            return
        with suppress(IdConflict):
            await share_space(self._memory, space, SHARED | _SHARED_TOO, event_id=_SHARING)
        self._shared.add(space)

    async def _retain_for_all(self, items: list[Item]) -> None:
        """Keep statements of a user for all projects as entries of the space `everywhere`."""
        for item in items:
            event = item.event
            said = event and event.kind == "user.injected" and _FOR_ALL.fullmatch(str(event.payload.get("text")))
            if event and said and f"{EVERYWHERE}/{event.id}" not in self._shared:
                await self._share(EVERYWHERE)
                await self._memory.long_term.retain(
                    EVERYWHERE, "user", said["text"].strip(), entry_id=event.id, source=event.space
                )
                self._shared.add(f"{EVERYWHERE}/{event.id}")

    def _save(self) -> None:
        newest = dict(list(self._sizes.items())[-_KNOWN_MAX:])
        aside = self._state.with_suffix(".new")
        aside.write_text(json.dumps(newest))
        aside.replace(self._state)


def _items(transcript: str) -> tuple[int, list[Item], str]:
    """The size of a transcript, its items, and the name of what their numbers count."""
    size = Path(transcript).stat().st_size
    (file,) = input_files([transcript]).files
    reading = file.format.read(file.source(), Options())
    return size, list(reading), reading.unit


def _chosen(transcripts: list[str]) -> list[str]:
    """The transcripts to read. One that hooks keep is read only if the agent's own cannot be read."""
    own = [each for each in transcripts if f"/{spool.FOLDER}/{spool.TRANSCRIPTS}/" in each.replace(os.sep, "/")]
    others = [each for each in transcripts if each not in own]
    readable = [each for each in others if _size(each) is None or _is_recognised(each)]
    return readable or own


def _rollouts(record: dict[str, Any]) -> list[str]:
    """The rollouts of a session of Codex whose event does not name one, such as the event of `notify`."""
    if record.get("agent") != "codex" or not record.get("session"):
        return []
    sessions = Path(located("~/.codex/sessions"))
    return [str(each) for each in sessions.rglob(f"rollout-*{escape(str(record['session']))}.jsonl")]


def _is_recognised(transcript: str) -> bool:
    try:
        with Path(transcript).open("rb") as file:
            return registry.recognise(Source(file).sample) is not None
    except OSError:
        return False


def _size(transcript: str) -> int | None:
    try:
        return Path(transcript).stat().st_size
    except OSError:
        return None


def _age(path: str) -> float:
    try:
        return time.time() - Path(path).stat().st_mtime
    except OSError:
        return 0.0


def _sizes_in(path: Path) -> dict[str, int]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
