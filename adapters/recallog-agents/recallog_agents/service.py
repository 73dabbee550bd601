"""`python -m recallog_agents.service HOME`: the process that serves the hooks of coding agents on one memory.

A hook starts it. It writes the records that hooks leave in the spool to the ledger, and answers with what the memory
recalls, so that a hook need not open a memory. It ends when no hook has called for half an hour, or when the last hooks
are uninstalled.
"""

import asyncio
import hmac
import json
import logging
import os
import secrets
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from recallog import Memory, RecallogError, Settings
from recallog_agents import noted, recalling, spool
from recallog_agents.capture import Capture
from recallog_agents.events import END, PROMPT, START
from recallog_projections import private_files
from recallog_service.formats import space_of_project

IDLE_SECONDS = 1800.0
_AT_ONCE_MAX = 8
"""The number of queries that are answered at the same time. Further ones get an empty answer, since it would be
late."""
_ANSWER_SECONDS = 2.0
"""How long an answer may take. The hook has ended by then, but the index is started for the next one."""
_LATE_START_SECONDS = 0.4
"""How long a prompt may wait for the answer that the start of its session has missed."""
_REQUEST_BYTES_MAX = 1024 * 1024
_LOOK_SECONDS = 2.0
"""How often the process checks whether transcripts have grown."""
_RETRY_SECONDS = 10.0
"""The pause after a failure, for example while another program holds a lock."""
_HEAD_BYTES = 256 * 1024

_log = logging.getLogger("recallog.agents")


class Service:
    """Serves one folder."""

    def __init__(self, memory: Memory, home: Path) -> None:
        self._memory = memory
        self._home = home
        self._capture = Capture(memory, home)
        self._token = secrets.token_hex(16)
        self._nudged = asyncio.Event()
        self._asked = 0
        self._active_at = time.monotonic()
        self._folders: dict[str, str] = {}
        """The folders in which sessions began."""
        self._was_installed = bool(noted.files(home))

    async def run(self) -> None:
        """Serve until no hook has called for `IDLE_SECONDS`, or the hooks are uninstalled."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=_REQUEST_BYTES_MAX)
        self._name_address(server.sockets[0].getsockname()[1])
        try:
            await self._start_index()
            while self._is_named():
                unused = self._is_unused()
                pause = _LOOK_SECONDS if await self._drain() else _RETRY_SECONDS
                if unused:
                    break
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._nudged.wait()
                self._nudged.clear()
        finally:
            if self._is_named():
                Path(spool.place(str(self._home), spool.ADDRESS)).unlink(missing_ok=True)
            server.close()

    def _is_unused(self) -> bool:
        """Whether no hook has called for long, or the last hooks of all projects were uninstalled."""
        installed = bool(noted.files(self._home))
        uninstalled = self._was_installed and not installed
        self._was_installed = installed
        return uninstalled or time.monotonic() - self._active_at >= IDLE_SECONDS

    def _name_address(self, port: int) -> None:
        address = Path(spool.place(str(self._home), spool.ADDRESS))
        aside = address.with_suffix(".new")
        aside.unlink(missing_ok=True)
        aside.touch(mode=0o600)
        aside.write_text(json.dumps({"port": port, "token": self._token, "pid": os.getpid()}))
        aside.replace(address)
        Path(spool.place(str(self._home), spool.STARTING)).unlink(missing_ok=True)

    def _is_named(self) -> bool:
        """Whether hooks find this process. They do not if the folder was deleted, or if another process serves it."""
        try:
            address = json.loads(Path(spool.place(str(self._home), spool.ADDRESS)).read_bytes())
            return bool(address["token"] == self._token)
        except (OSError, ValueError, KeyError, TypeError):
            return False

    async def _start_index(self) -> None:
        with suppress(RecallogError):  # until it can be started, words are compared
            await self._memory.start_index()

    async def _drain(self) -> bool:
        """Read the records of hooks. Returns whether all of them could be read."""
        try:
            if await self._capture.drain():
                await self._memory.catch_up()
            return not self._capture.is_stuck
        except Exception as error:  # noqa: BLE001 - the next drain tries again
            _log.exception("what hooks left could not be read")
            spool.log(str(self._home), f"not captured yet: {type(error).__name__}: {error}")
            return False

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = json.loads(await asyncio.wait_for(reader.readline(), _ANSWER_SECONDS))
            if not hmac.compare_digest(str(request["token"]), self._token):
                return
            self._active_at = time.monotonic()
            writer.write(json.dumps(await self._answer(request)).encode() + b"\n")
            await writer.drain()
        except (OSError, ValueError, KeyError, TypeError, TimeoutError):
            pass  # not a hook, or one that has ended
        finally:
            writer.close()

    async def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        action, space = request["action"], self._space_of(request)
        if action == START:
            await self._start_index()
        if action not in (START, PROMPT):
            self._nudged.set()
        if space is None or action not in (START, PROMPT):
            return {}
        if self._asked >= _AT_ONCE_MAX:
            return {"late": True}
        self._asked += 1
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                return await self._recall(space, request)
        except RecallogError as error:
            spool.log(str(self._home), f"{request['agent']}: nothing recalled: {error}")
            return {}
        finally:
            self._asked -= 1
            self._nudged.set()  # after the answer, so that it does not wait for the drain

    async def _recall(self, space: str, request: dict[str, Any]) -> dict[str, Any]:
        """The texts for a session. At a prompt, they include the state of the work if the start of the session missed
        it. The prompt does not wait for it."""
        agent, session, source = (str(request[name]) for name in ("agent", "session", "source"))
        if request["action"] == START:
            return {"text": await recalling.at_start(self._memory, space, agent, session, source)}
        start, found = await asyncio.gather(
            self._late_start(space, agent, session, source),
            recalling.at_prompt(self._memory, space, agent, session, str(request["prompt"])),
        )
        return {"text": "\n".join(filter(None, (start, found))), "late": start is None}

    async def _late_start(self, space: str, agent: str, session: str, source: str) -> str | None:
        """The answer that the start of a session missed; None if it would be late again."""
        if not source:
            return ""
        try:
            async with asyncio.timeout(_LATE_START_SECONDS):
                return await recalling.at_start(self._memory, space, agent, session, source)
        except TimeoutError:
            return None

    def _space_of(self, request: dict[str, Any]) -> str | None:
        """The space of the project of a session, by the folder in which the session began."""
        session = str(request["session"])
        for transcript in request["transcripts"]:
            if transcript in self._capture.spaces:
                return self._capture.spaces[transcript]
        if session not in self._folders:
            began_in = next(filter(None, map(_folder_in, request["transcripts"])), None)
            self._folders[session] = began_in or str(request["folder"])
        folder = self._folders[session]
        if request["action"] == END:
            self._folders.pop(session, None)
        return space_of_project(folder)


def _folder_in(transcript: str) -> str | None:
    """The folder that the beginning of a transcript names."""
    try:
        with Path(transcript).open("rb") as file:
            lines = file.read(_HEAD_BYTES).splitlines()
    except OSError:
        return None
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        for place in (record, record.get("payload")) if isinstance(record, dict) else ():
            if isinstance(place, dict) and isinstance(place.get("cwd"), str):
                return str(place["cwd"])
    return None


async def serve(home: Path) -> None:
    async with Memory.open(Settings.of_folder(home)) as memory:
        await Service(memory, home).run()


def main() -> None:
    """Serve the folder that the arguments name. Returns at once if another process serves it."""
    home = Path(sys.argv[1])
    os.umask(private_files.UMASK)
    os.environ.update(noted.environment(home))
    Path(spool.place(str(home), spool.SPOOL)).mkdir(parents=True, exist_ok=True)
    logging.basicConfig(
        filename=spool.place(str(home), "service.log"), level=logging.WARNING, format="%(asctime)s %(name)s %(message)s"
    )
    try:
        with private_files.hold_lock(Path(spool.place(str(home), spool.LOCK))):
            asyncio.run(serve(home))
    except private_files.LockHeld:
        pass
    except Exception as error:
        spool.log(str(home), f"the process that serves hooks ended: {type(error).__name__}: {error}")
        raise


if __name__ == "__main__":
    main()
