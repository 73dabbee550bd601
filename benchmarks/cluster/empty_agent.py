"""The least that a Faust agent can do: count. `python -m benchmarks.cluster.empty_agent SERVERS TOPIC`.

Prints "counted [seconds on its clock, events so far]" twice a second, until it is stopped.
"""

import json
import sys
import time

import faust

SAYS = "counted "


def build(servers: str, topic: str) -> faust.App:
    """An app with one agent on `topic`, from its beginning, in a consumer group of its own."""
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
        print(SAYS + json.dumps([time.perf_counter(), count]), flush=True)

    return app


if __name__ == "__main__":
    faust.Worker(build(sys.argv[1], sys.argv[2]), loglevel="warning").execute_from_commandline()
