"""What must hold at the end for the load beside the producers: the copy, the lists and the promises.

the copy    equals the first records of the topic, space by space
the lists   have a history without anomalies (see `support.list_append`); the views and the copy show each list as it is
promises    have one answer each, and those in calm are answered promptly
"""

import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager

from chaos.appends import LIST_MAX, PROMISE, VALUE
from chaos.conductor import Conductor
from chaos.copies import copied_values
from chaos.evidence import TopicRecord
from chaos.latencies import P99_SECONDS_MAX
from chaos.lists import Lists, find_anomalies, lists_of_topic, read_histories, read_lists
from chaos.processes import json_of
from recallog import Memory, Settings

_ANSWER = "agent.thought"
_FINDINGS_MAX = 5

Topic = Mapping[int, Sequence[TopicRecord]]


@asynccontextmanager
async def open_memory(conductor: Conductor) -> AsyncIterator[Memory]:
    """A memory on the cluster of a run."""
    given = conductor.settings
    settings = Settings(
        ledger=given["RECALLOG_LEDGER"],
        views=given["RECALLOG_VIEWS"],
        projections=given["RECALLOG_PROJECTIONS"],
    )
    async with Memory.open(settings) as memory:
        yield memory


def copy_findings(conductor: Conductor, topic: Topic) -> list[str]:
    """Differences between the topic and the copy after a last run of `recallog copy` that nothing disturbs."""
    command = ("copy", conductor.settings["RECALLOG_LEDGER"], str(conductor.copies.home), "--json")
    # The exit code is 1 because contradictions are left out.
    json_of(conductor.folder, conductor.settings, "copy-last", *command, codes=(0, 1))
    copied = copied_values(conductor.copies.home)
    expected: dict[str, dict[str, bytes]] = {}
    for record in (record for partition in sorted(topic) for record in topic[partition]):
        fields = json.loads(record.value)
        expected.setdefault(fields["space"], {}).setdefault(fields["id"], record.value)
    differing = [
        f"the copy of {space} has {len(copied.get(space, ()))} events and differs from the {len(values)} of the topic"
        for space, values in expected.items()
        if copied.get(space) != list(values.values())
    ]
    return [*differing, *(f"the copy has a space {space}" for space in copied.keys() - expected.keys())][:_FINDINGS_MAX]


async def list_findings(conductor: Conductor, topic: Topic) -> list[str]:
    """Anomalies in the histories of the lists, and promises that do not have exactly one answer."""
    lists = lists_of_topic(topic)
    async with open_memory(conductor) as memory:
        end = {"the views": await read_lists(memory, lists)}
        answers = await _count_answers(memory, lists)
    if conductor.campaign.thorough:
        async with Memory.open(Settings(home=conductor.copies.home, index="off")) as copy:
            end["the copy"] = await read_lists(copy, lists)
            if await _count_answers(copy, lists) != answers:
                return ["the copy does not show the same answers to promises as the views"]
    histories = read_histories(conductor.folder, conductor.campaign.appender_names, lists, end)
    return [*find_anomalies(histories), *_find_wrong_answers(_promises_of(topic), answers)]


def _promises_of(topic: Topic) -> set[str]:
    """The texts of all promises."""
    payloads = (json.loads(record.value)["payload"] for records in topic.values() for record in records)
    return {payload["text"] for payload in payloads if VALUE in payload and payload["text"].startswith(PROMISE)}


async def _count_answers(memory: Memory, lists: Lists) -> Counter[str]:
    """How often the views show an answer to each promise, by its text."""
    found: Counter[str] = Counter()
    for space, agents in lists.items():
        for agent in agents:
            page = await memory.timeline(space, agent, limit=LIST_MAX, kinds=[_ANSWER])
            found.update(item.text for item in page.items if item.event.agent == agent)
    return found


def _find_wrong_answers(promises: set[str], answers: Counter[str]) -> Iterator[str]:
    wrong = [text for text in sorted(promises) if answers[text] != 1]
    yield from (f"{text!r} has {answers[text]} answers" for text in wrong[:_FINDINGS_MAX])
    if len(wrong) > _FINDINGS_MAX:
        yield f"{len(wrong) - _FINDINGS_MAX:,} more promises do not have one answer"


def latency_findings(conductor: Conductor) -> list[str]:
    """Whether the promises in calm were answered too late. Writes down all times for a second look."""
    tail, faults = conductor.tail, conductor.faults
    times = {"due": tail.due, "answered": tail.answered, "faults": [faults.begun, faults.ended]}
    (conductor.folder / "promises.json").write_text(json.dumps(times))
    found = tail.latencies(faults)
    if found is None or found.p99_seconds <= P99_SECONDS_MAX:
        return []
    return [f"triggers in calm took {found.p99_seconds:.1f} s (p99), {P99_SECONDS_MAX:g} s are allowed"]
