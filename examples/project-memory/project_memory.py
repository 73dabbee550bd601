"""The memory of a project for people and coding agents: its notes, its sessions, decisions, and what is open.

`project-memory load` reads notes and session logs; `project-memory why "…"` quotes what answers a question.
"""

import argparse
import asyncio
import json
import os
import secrets
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from recallog import InvalidArgument, Memory, RecallogError
from recallog.views import RecallHit
from recallog_service.formats import Options
from recallog_service.ingest import ingest_paths

AGENT = "project"
DOCUMENTS = "workspace"
OPEN = "open"
NOTE_SUFFIXES = {".md", ".rst", ".txt"}
NOTE_BYTES_MAX = 64 * 1024
HITS = 5
HOOK_HITS = 3
PAGE = 1_000
QUOTE_CHARS = 300
BRIEF_DECISIONS = 8
BRIEF_LINES = 3
IGNORED = {"node_modules", "build", "dist"}


@dataclass(frozen=True)
class Loaded:
    """What a run of `load` has added, changed and left out."""

    notes: int
    removed: int
    events: int
    left_out: Sequence[str]


class Project:
    """The memory of the project in the folder `root`: one space, in which all agents see each other's work."""

    def __init__(self, memory: Memory, root: Path) -> None:
        self._memory = memory
        self._root = root.resolve()
        self.space = f"project{self._root.as_posix()}"

    async def load(self, sessions: Sequence[str] = ()) -> Loaded:
        """Read the notes of the project, and logs of sessions. A second call adds only what has changed."""
        notes, removed, left_out = 0, 0, list[str]()
        known = {key async for key in self._keys(DOCUMENTS)}
        found = {path.relative_to(self._root).as_posix(): path for path in notes_in(self._root)}
        for key, path in [*found.items()]:
            data = path.read_bytes()
            if len(data) > NOTE_BYTES_MAX:
                left_out.append(f"{key}: larger than {NOTE_BYTES_MAX:,} bytes")
                del found[key]  # so that no former text of the note is quoted
                continue
            text = data.decode(errors="replace")
            present = (await self._memory.items.get(self.space, AGENT, DOCUMENTS, key)).item
            if present is None or present.value != text:
                try:
                    await self._memory.items.put(self.space, AGENT, DOCUMENTS, key, text)
                except InvalidArgument as error:  # its JSON has escapes, and is longer than the file
                    left_out.append(f"{key}: {error}")
                    del found[key]
                    continue
                notes += 1
        for key in known - found.keys():
            removed += (await self._memory.items.delete(self.space, AGENT, DOCUMENTS, key)).changed
        if not sessions:
            return Loaded(notes, removed, 0, left_out)
        read = await ingest_paths(self._memory, sessions, Options(space=self.space), shared=True)
        left_out += [f"{each.file}: {problem.message}" for each in read.files for problem in each.problems]
        left_out += [f"{name}: unknown format" for name in read.unrecognised]
        return Loaded(notes, removed, read.added, left_out)

    async def why(self, question: str, limit: int = HITS) -> list[str]:
        """What notes, sessions and decisions say to a question, best first, each with its source."""
        types = ["document", "event", "decision"]
        found = await self._memory.recall(self.space, AGENT, question, top_k=limit, types=types)
        return [f"{source_of(hit)}\n  {quote_of(hit)}" for hit in found.hits if not hit.weak]

    async def decide(self, text: str, because: str | None = None, replaces: str | None = None) -> str:
        """Record a decision, and return the id of the entry that has it. A decision that it replaces is no longer
        found."""
        sentence = text if because is None else f"{text} Because: {because}"
        id_ = f"d-{secrets.token_hex(3)}"
        kept = await self._memory.long_term.retain(self.space, AGENT, sentence, type="decision", entry_id=id_)
        if kept.id is None:
            raise InvalidArgument(kept.explanation)
        if replaces not in (None, kept.id):  # kept first: if it is refused, the former decision stays
            await self._memory.long_term.retract(self.space, AGENT, replaces, reason=f"replaced by {kept.id}")
        return kept.id

    async def decisions(self, limit: int = PAGE) -> list[str]:
        """The decisions that hold, newest first."""
        page = await self._memory.long_term.list(self.space, AGENT, type="decision", limit=limit)
        return [f"{entry.id}  {entry.at:%Y-%m-%d}  {entry.text}" for entry in page.entries]

    async def open_item(self, text: str) -> str:
        """Note something to do, and return its id."""
        id_ = f"o-{secrets.token_hex(3)}"
        await self._memory.items.put(self.space, AGENT, OPEN, id_, text)
        return id_

    async def close_item(self, id_: str, done: str | None = None) -> bool:
        """Close what is open; False if nothing with this id is. What was done becomes a memory."""
        item = (await self._memory.items.get(self.space, AGENT, OPEN, id_)).item
        if item is None:
            return False
        text = f"Closed {id_}: {item.value}" + (f" Done: {done}" if done else "")
        event = {"space": self.space, "agent": AGENT, "kind": "agent.spoke", "id": f"closed-{id_}"}
        await self._memory.publish({**event, "payload": {"text": text}})  # first, so that it is not lost
        await self._memory.items.delete(self.space, AGENT, OPEN, id_)
        return True

    async def open_items(self) -> list[str]:
        page = await self._memory.items.list(self.space, AGENT, OPEN, limit=PAGE)
        return [f"{item.key}  {item.value}" for item in page.items]

    async def brief(self) -> str:
        """What a session should know when it starts: decisions, what is open, and where the last session stopped."""
        stopped = await self._memory.resume(self.space)
        lines: Sequence[str] = ()
        if stopped.session is not None:
            page = await self._memory.timeline(self.space, AGENT, session=stopped.session, limit=BRIEF_LINES)
            lines = page.format().splitlines()
        parts = {
            "Decisions": await self.decisions(BRIEF_DECISIONS),
            "Open": await self.open_items(),
            f"Last session ({stopped.session})": lines,
        }
        return "\n\n".join("\n".join([f"{heading}:", *part]) for heading, part in parts.items() if part)

    async def _keys(self, namespace: str) -> AsyncIterator[str]:
        cursor: str | None = None
        while True:
            page = await self._memory.items.list(self.space, AGENT, namespace, limit=PAGE, cursor=cursor)
            for item in page.items:
                yield item.key
            if (cursor := page.next) is None:
                return


def notes_in(root: Path) -> Iterator[Path]:
    """The notes below a folder, without links, hidden folders and the folders of tools."""
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in IGNORED)
        for name in sorted(files):
            path = Path(folder, name)
            if path.suffix in NOTE_SUFFIXES and path.is_file() and not path.is_symlink():
                yield path


def source_of(hit: RecallHit) -> str:
    """Where a hit is from: a note with its lines, a decision, or a session with its date."""
    if hit.lines is not None:
        return f"{hit.event.payload['key']}:{hit.lines[0]}-{hit.lines[1]}"
    if hit.is_entry:
        return f"decision {hit.event.id}, {hit.event.at:%Y-%m-%d}"
    return f"{hit.event.agent} in session {hit.event.session or '(none)'}, {hit.event.at:%Y-%m-%d}"


def quote_of(hit: RecallHit) -> str:
    words = hit.quote if hit.lines is None else hit.quote.partition("\n")[2]  # the first line names the note
    text = " ".join(words.split())
    return text if len(text) <= QUOTE_CHARS else text[:QUOTE_CHARS].rstrip() + "…"


async def answer_hook(project: Project, given: Mapping[str, str]) -> str | None:
    """What a hook of a coding agent adds: the brief at the start of a session, matching memories at a prompt."""
    match given.get("hook_event_name"):
        case "SessionStart":
            return await project.brief()
        case "UserPromptSubmit":
            return "\n".join(await project.why(given.get("prompt", ""), HOOK_HITS))
        case _:
            return None


async def run(given: argparse.Namespace) -> int:
    """Run one command; 1 if it found nothing."""
    async with Memory.open(given.home or given.root / ".recallog") as memory:
        project = Project(memory, given.root)
        match given.command:
            case "load":
                loaded = await project.load(given.sessions)
                for reason in loaded.left_out:
                    print(f"left out {reason}", file=sys.stderr)
                lines = [f"{loaded.notes} notes changed, {loaded.removed} removed, {loaded.events} events added"]
            case "why":
                lines = await project.why(given.text)
            case "decide":
                lines = [await project.decide(given.text, given.because, given.replaces)]
            case "decisions":
                lines = await project.decisions()
            case "open":
                lines = [await project.open_item(given.text)] if given.text else await project.open_items()
            case "close":
                lines = ["closed"] if await project.close_item(given.id, given.done) else []
            case "brief":
                lines = [await project.brief()]
            case _:  # hook
                hook = json.load(sys.stdin)
                added = await answer_hook(project, hook)
                about = {"hookEventName": hook.get("hook_event_name"), "additionalContext": added}
                lines = [json.dumps({"hookSpecificOutput": about})] if added else []
    print("\n".join(lines) or "(nothing)" if given.command != "hook" else "".join(lines))
    return 0 if lines or given.command == "hook" else 1


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="project-memory", description="The memory of a project.")
    parser.add_argument("--root", type=Path, default=Path(), help="folder of the project")
    parser.add_argument("--home", type=Path, help="folder of the memory; default: .recallog in the project")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("load", help="read notes and session logs").add_argument("sessions", nargs="*")
    commands.add_parser("why", help="quote what answers a question").add_argument("text")
    decide = commands.add_parser("decide", help="record a decision")
    decide.add_argument("text")
    decide.add_argument("--because")
    decide.add_argument("--replaces", metavar="ID")
    commands.add_parser("decisions", help="list the decisions that hold")
    commands.add_parser("open", help="note what is open, or list it").add_argument("text", nargs="?")
    close = commands.add_parser("close", help="close what is open")
    close.add_argument("id")
    close.add_argument("--done", help="what was done")
    commands.add_parser("brief", help="decisions, what is open, where the last session stopped")
    commands.add_parser("hook", help="answer a hook of a coding agent: JSON on stdin")
    try:
        sys.exit(asyncio.run(run(parser.parse_args(words))))
    except RecallogError as error:
        print(f"error {error}", file=sys.stderr)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
