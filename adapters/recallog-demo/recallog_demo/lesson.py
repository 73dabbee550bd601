"""A chapter of the demo: an agent learns a lesson at the end of a session, uses it in the next one, corrects it, and
forgets it."""

from dataclasses import dataclass
from pathlib import Path

from recallog import Event, Memory
from recallog_demo import village

NOTES = ["LESSON: Ask a man where he was before you call him a thief.", "The judge is slower than she looks."]
"""The notes of the accuser in the session in which she finds that she was wrong. The second line is not a lesson."""
CORRECTED = "LESSON: Ask anyone where they were before you call them a thief."
QUESTION = "Who is the thief, and where was he?"
RECALLED = "RECALLED"


@dataclass(frozen=True, slots=True)
class Learned:
    """The course of the lesson. Lines are the lines of RECALLED in the accuser's prompt that show an entry."""

    session: str
    kept: int
    """The number of entries that the end of the session made of the notes."""
    used: list[str]
    corrected: list[str]
    forgotten: list[str]
    found_after_rebuild: int
    """The number of entries that recall found after the views were rebuilt."""
    listed_after_rebuild: int
    audit: list[str]
    """The changes of the entry in the audit, oldest first."""
    event_added: bool
    """Whether the rebuild added an event to the ledger."""

    @property
    def as_expected(self) -> bool:
        """Whether the lesson was in the prompts from its learning to its erasure, in its wording at that time."""
        return (
            self.kept == 1
            and [line.rpartition("] ")[2] for line in (*self.used, *self.corrected)] == [NOTES[0], CORRECTED]
            and self.forgotten == []
            and self.found_after_rebuild == self.listed_after_rebuild == 0
            and self.audit == ["retained", "updated", "erased"]
            and not self.event_added
        )


async def learn_and_forget(home: Path) -> Learned:
    """Play the recording up to the belief with which the accuser corrects herself, in the empty folder `home`."""
    recording = village.recording()
    ids = [event.id for event in recording]
    belief = recording[ids.index(village.BETTER_BELIEF)]
    session = belief.session or ""
    space, agent = village.SPACE, village.ACCUSER
    async with Memory.open(village.settings(home)) as memory:
        await memory.publish_many(recording[: ids.index(village.BETTER_BELIEF) + 1])
        await memory.working.set(space, agent, "notes", NOTES, session=session)
        ended = Event(
            space=space, agent=agent, kind="session.ended", session=session, turn=belief.turn, at=belief.at, payload={}
        )
        await memory.publish(ended)
        await memory.react(space)
        kept = (await memory.long_term.list(space, agent)).entries
        used = await _recalled(memory)
        for entry in kept:
            await memory.long_term.update(space, agent, entry.id, text=CORRECTED)
        corrected = await _recalled(memory)
        for entry in kept:
            await memory.long_term.forget(space, agent, [entry.id], reason="it is nobody's business")
        forgotten = await _recalled(memory)
        ends = await memory.admin.ledger_ends()
        await memory.admin.rebuild("views")
        found = await memory.recall(space, agent, QUESTION, top_k=100, kinds=["memory.retained"])
        audit = await memory.long_term.audit(space, agent)
        return Learned(
            session=session,
            kept=len(kept),
            used=used,
            corrected=corrected,
            forgotten=forgotten,
            found_after_rebuild=len(found.hits),
            listed_after_rebuild=len((await memory.long_term.list(space, agent)).entries),
            audit=[each.operation for each in audit.changes],
            event_added=await memory.admin.ledger_ends() != ends,
        )


async def _recalled(memory: Memory) -> list[str]:
    """The entries under RECALLED in the accuser's prompt."""
    prompt = await memory.context(village.SPACE, village.ACCUSER, query=QUESTION)
    sections = dict(section.partition("\n")[::2] for section in prompt.text.split("\n\n"))
    return [line for line in sections.get(RECALLED, "").splitlines() if "[memory.retained]" in line]
