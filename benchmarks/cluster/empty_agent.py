"""A Faust agent that only counts events. `python -m benchmarks.cluster.empty_agent SERVERS TOPIC`.

Prints "counted [seconds on its clock, events so far]" twice per second until it is stopped.
"""

import json
import sys
import time

import faust

PREFIX = "counted "


def build(servers: str, topic: str) -> faust.App:
    """An app with one agent that reads `topic` from its beginning, in its own consumer group."""
    app = faust.App(
        f"empty-agent-{time.time_ns()}",
        broker=[f"kafka://{server}" for server in servers.split(",")],
        store="memory://",
        web_enabled=False,
        topic_disable_leader=True,
        consumer_auto_offset_reset="earliest",
        worker_redirect_stdouts=False,
    )
    count = 0

    @app.agent(app.topic(topic, key_serializer="raw", value_serializer="raw"))
    async def empty(stream: faust.StreamT[bytes]) -> None:
        nonlocal count
        async for _ in stream:
            count += 1

    @app.timer(interval=0.5)  # type: ignore[untyped-decorator]
    async def report() -> None:
        print(PREFIX + json.dumps([time.perf_counter(), count]), flush=True)

    return app


if __name__ == "__main__":
    faust.Worker(build(sys.argv[1], sys.argv[2]), loglevel="warning").execute_from_commandline()
