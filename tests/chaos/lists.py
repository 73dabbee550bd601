"""The histories of the lists: what the appenders have recorded, and what is there at the end, space by space."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from chaos import history
from chaos.appends import KIND, LIST_MAX, PREFIX, VALUE
from chaos.evidence import TopicRecord
from recallog import Memory
from support.list_append import NEVER, Append, History, Read

Lists = Mapping[str, Mapping[str, Sequence[str]]]
"""By space and agent: the values of a list."""

_SHOWN_MAX = 5


def lists_of_topic(topic: Mapping[int, Sequence[TopicRecord]]) -> Lists:
    """Each list as the first records of its events are in the topic."""
    found: dict[str, dict[str, list[str]]] = {}
    known = set()
    for record in (record for partition in sorted(topic) for record in topic[partition]):
        fields = json.loads(record.value)
        value = fields["payload"].get(VALUE)
        if value is not None and (fields["space"], fields["id"]) not in known:
            known.add((fields["space"], fields["id"]))
            for agent in (fields["agent"], *(fields.get("audience") or ())):
                found.setdefault(fields["space"], {}).setdefault(agent, []).append(value)
    return found


async def read_lists(memory: Memory, lists: Lists) -> Lists:
    """The same lists, read from the views of a memory."""
    return {
        space: {
            agent: [
                item.event.payload[VALUE]
                for item in (await memory.timeline(space, agent, limit=LIST_MAX, kinds=[KIND])).items
            ]
            for agent in agents
        }
        for space, agents in lists.items()
    }


def read_histories(folder: Path, appenders: Sequence[str], last: Lists, end: Mapping[str, Lists]) -> dict[str, History]:
    """The history of each space of lists.

    Args:
        folder: the folder of the run.
        appenders: the names of the processes that have recorded their operations there.
        last: each list as it is in the topic.
        end: by the name of a reader: what it has read after everything had ended, which must be all.
    """
    found = {space: History(last=lists) for space, lists in last.items()}
    for name in appenders:
        _add_operations(history.path_of(folder, name), found)
    now = time.monotonic_ns()
    for reader, by_space in end.items():
        for space, lists in by_space.items():
            found[space].reads.append(Read(f"{reader} at the end", reader, now, now, lists, is_current=True))
    return found


def _add_operations(path: Path, found: dict[str, History]) -> None:
    begun: dict[str, dict[str, Any]] = {}
    for line in history.Tail(path).lines():
        if line["what"] == "invoked":
            begun[line["op"]] = line
        elif "op" in line:
            _add(begun.pop(line["op"]), line, found)
    for line in begun.values():  # the process was killed
        _add(line, {"what": "unknown", "time": NEVER}, found)


def _add(begun: Mapping[str, Any], ended: Mapping[str, Any], found: dict[str, History]) -> None:
    into = found.setdefault(begun["space"], History())
    name, session, outcome = begun["op"], begun["process"], ended["what"]
    if begun["kind"] == "append":
        known = ended["time"] if outcome == "ok" else NEVER
        values = [(value, lists) for value, lists in begun["appended"]]
        into.appends.append(Append(name, session, begun["time"], known, outcome, values))
    elif outcome == "ok":
        is_current, waited_for = begun["reader"] == "ledger", begun["sees"]
        into.reads.append(Read(name, session, begun["time"], ended["time"], ended["lists"], is_current, waited_for))


def find_anomalies(histories: Mapping[str, History]) -> Iterator[str]:
    """Findings: some anomalies of each space."""
    if not any(space.startswith(PREFIX) for space in histories):
        yield "nothing was appended to lists"
    for space, of_space in sorted(histories.items()):
        anomalies = of_space.find_anomalies()
        yield from (f"{space}: {anomaly.name}: {anomaly.words}" for anomaly in anomalies[:_SHOWN_MAX])
        if len(anomalies) > _SHOWN_MAX:
            yield f"{space}: and {len(anomalies) - _SHOWN_MAX:,} more"
