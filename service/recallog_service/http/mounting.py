"""Further applications that the server has in the same process, if they are installed."""

from collections.abc import Sequence

from recallog import Memory
from recallog_service.http.app import Mounted

MCP = "/mcp"


def list_mounted(memory: Memory) -> Sequence[Mounted]:
    """The applications that are installed: MCP."""
    try:
        from recallog_service.mcp.transports import HttpTransport
    except ModuleNotFoundError:
        return []
    transport = HttpTransport(memory)
    return [Mounted(MCP, transport, transport.lifespan)]
