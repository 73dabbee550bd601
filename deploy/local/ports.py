"""Ports on which a server can listen, be killed, and listen again."""

import random
import socket
from pathlib import Path

HOST = "127.0.0.1"
KAFKA_PORT = 9092
"""Where `make cluster` lets Kafka listen, if no other program does: the port in the commands of docs/cluster.md."""
REDIS_PORT = 6379

_LOWEST = 20_000
_ATTEMPTS = 200
_given: set[int] = set()
"""The ports that this process has given out: their servers may not listen yet, or be killed and start again."""
_OUTGOING = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port() -> int:
    """A port that is free at this moment; binding it may still fail if another process is faster.

    It is outside the range of outgoing ports. Otherwise a client that reconnects repeatedly while a killed server is
    down could be given that port for its own end, connect to itself, and prevent the server from starting again.
    """
    ports = range(_LOWEST, _lowest_outgoing_port())
    for _ in range(_ATTEMPTS if len(ports) >= _ATTEMPTS else 0):
        port = random.choice(ports)
        if port not in _given and is_free(port):
            _given.add(port)
            return port
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def is_free(port: int) -> bool:
    """Whether a server could listen on `port` now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: closing connections do not count
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _lowest_outgoing_port() -> int:
    try:
        return int(_OUTGOING.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 32_768  # Linux; macOS begins at 49,152
