"""Random histories of one conversation against an oracle that shares no code: a list of messages."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallog import Memory
from support.events import run
from support.twice import once, twice

pytestmark = pytest.mark.models("conversations")

CHAT = ("s", "bot", "x")

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("history"), st.integers(1, 15)),
        st.tuples(st.just("newest"), st.integers(1, 12)),
        st.tuples(st.just("again"), st.integers(0, 40)),
        st.tuples(st.just("pop"), st.integers(1, 12)),
        st.tuples(st.just("remove"), st.integers(0, 60)),
        st.tuples(st.just("clear"), st.just(0)),
        st.tuples(st.just("compact"), st.integers(4, 9)),
        st.tuples(st.just("react"), st.just(0)),
    ),
    max_size=14,
)


class Oracle:
    """What a conversation is by the words of its documentation."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.covered: list[dict[str, Any]] = []
        """What the summary stands for, also if it was taken out."""
        self.since: list[dict[str, Any]] = []
        """What was added since the last compaction, and not taken out."""
        self.uncovered = 0
        """How many messages are neither taken out nor were ever compacted."""
        self.is_due = False

    @property
    def live(self) -> list[dict[str, Any]]:
        return [each for each in self.messages if each not in self.covered]

    def add(self, new: list[dict[str, Any]]) -> None:
        for each in new:
            self.messages.append(each)
            self.since.append(each)
            self.uncovered += 1
            if len(self.since) > 20 and self.uncovered > 8:
                self.is_due = True

    def remove(self, gone: list[dict[str, Any]]) -> None:
        for each in gone:
            self.messages.remove(each)
            if each in self.covered:
                if each == self.covered[-1]:
                    self.covered = []
                continue
            self.uncovered = max(self.uncovered - 1, 0)
            if each in self.since:
                self.since.remove(each)
            elif not self.covered and self.since:
                self.since.pop(0)

    def compact(self, most: int, keep: int) -> int:
        counted = sum(each in self.since for each in self.live) if self.covered else len(self.live)
        if len(self.live) <= keep or counted <= most:
            return 0
        head = self.live[:-keep]
        self.covered = [*self.covered, *head]
        self.uncovered = max(self.uncovered - len(head), 0)
        self.since = []
        return len(head)


@settings(max_examples=60, deadline=None)
@given(STEPS, st.booleans())
def test_a_conversation_is_what_its_oracle_says(steps: list[tuple[str, int]], delivered_twice: bool) -> None:
    async def work() -> None:
        async with twice() if delivered_twice else once() as memory:
            oracle, said = Oracle(), 0
            for what, number in steps:
                new = [{"role": "user", "content": f"message {said + each}"} for each in range(number)]
                if what == "history":
                    # A program that has compacted goes on with what it was shown.
                    await memory.conversation.add(*CHAT, [*await shown(memory), *new])
                    said += number
                    oracle.add(new)
                elif what == "newest":
                    await memory.conversation.add(*CHAT, new, continues=True)
                    said += number
                    oracle.add(new)
                elif what == "again":
                    assert (await memory.conversation.add(*CHAT, oracle.messages[:number])).added == 0
                elif what == "pop":
                    gone = oracle.messages[-number:]
                    assert list((await memory.conversation.pop(*CHAT, count=number)).messages) == gone
                    oracle.remove(gone)
                elif what == "remove" and oracle.messages:
                    index = number % len(oracle.messages)
                    id_ = (await memory.conversation.messages(*CHAT, whole=True)).ids[index]
                    assert (await memory.conversation.remove(*CHAT, [id_])).removed == (id_,)
                    oracle.remove([oracle.messages[index]])
                elif what == "clear":
                    await memory.conversation.clear(*CHAT)
                    oracle.remove(list(oracle.messages))
                elif what == "compact":
                    done = await memory.conversation.compact(*CHAT, max_messages=8, keep=number)
                    assert done.compacted == oracle.compact(8, number)
                elif what == "react":
                    assert bool(await memory.react()) == oracle.is_due
                    if oracle.is_due:
                        oracle.compact(20, 8)
                        oracle.is_due = False
                await check(memory, oracle)
            assert (await memory.admin.rebuild("views")).ok
            await check(memory, oracle)
            assert (await memory.admin.verify("views")).ok
            assert (await memory.admin.dead_letters()).items == ()

    run(work())


async def shown(memory: Memory, *, whole: bool = False) -> list[dict[str, Any]]:
    return list((await memory.conversation.messages(*CHAT, whole=whole)).messages)


async def check(memory: Memory, oracle: Oracle) -> None:
    assert await shown(memory, whole=True) == oracle.messages
    found = await shown(memory)
    if oracle.covered:
        assert found[0]["content"].startswith("[compacted] ")
        found = found[1:]
    assert found == oracle.live
    assert bool(await memory.pending("s")) == oracle.is_due
