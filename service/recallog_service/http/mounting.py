"""Other applications in the process of the server, if they are installed."""

from collections.abc import Sequence

from recallog import Memory
from recallog_service.http.app import Mounted

MCP = "/mcp"


def list_mounted(memory: Memory) -> Sequence[Mounted]:
    """The installed applications: MCP."""
    try:
        from recallog_service.mcp.transports import HttpTransport
    except ModuleNotFoundError:
        return []
    transport = HttpTransport(memory)
    return [Mounted(MCP, transport, transport.lifespan)]
