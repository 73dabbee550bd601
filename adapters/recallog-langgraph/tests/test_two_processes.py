"""The data that a graph has stored is still there after its process was killed."""

import signal
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os, signal, sys
from typing import TypedDict
from langgraph.graph import END, START, StateGraph
from langgraph.store.base import BaseStore
from recallog.sync import Memory
from recallog_langgraph import RecallogSaver, RecallogStore

class State(TypedDict):
    said: list[str]

def answer(state: State, *, store: BaseStore) -> State:
    store.put(("ann",), str(len(state["said"])), {"text": state["said"][-1]})
    return {"said": [*state["said"], "noted"]}

folder, text, kill = sys.argv[1:]
memory = Memory.open(folder)
builder = StateGraph(State)
builder.add_node(answer)
builder.add_edge(START, "answer")
builder.add_edge("answer", END)
of = {"space": "home", "agent": "assistant"}
graph = builder.compile(checkpointer=RecallogSaver(memory, **of), store=RecallogStore(memory, **of))
thread = {"configurable": {"thread_id": "monday"}}
before = graph.get_state(thread).values.get("said", [])
graph.invoke({"said": [*before, text]}, thread)
if kill == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
print(graph.get_state(thread).values["said"])
print(sorted(each.value["text"] for each in graph.store.search(("ann",))))
memory.close()
"""


def test_a_graph_remembers_what_a_killed_process_was_told(tmp_path: Path) -> None:
    def run(text: str, how: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", PROGRAM, str(tmp_path), text, how]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    assert run("I am Ann.", "kill").returncode == -signal.SIGKILL
    done = run("I like plums.", "end")
    assert done.stdout.splitlines() == [
        "['I am Ann.', 'noted', 'I like plums.', 'noted']",
        "['I am Ann.', 'I like plums.']",
    ], done.stderr
