"""The start of the process that serves indexes.

Imports are deferred, so that programs can connect to the process before it imports the engine and the model.
"""

import logging
import os
import socket
from contextlib import suppress

from recallog.json_lines import JsonLines


def main() -> None:
    """Serve folders at the socket that is standard input, until none is served any more."""
    # Windows does not have this module, and this process does not run there: it has no Unix sockets.
    import resource

    from recallog_projections import private_files

    listener = socket.socket(fileno=os.dup(0))
    listener.listen()  # from here on, the system names this process to programs that connect
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with suppress(ValueError, OSError):  # macOS refuses its own "unlimited"
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # a folder takes 20 files; most systems allow 1,024
    os.umask(private_files.UMASK)  # the engine's library creates files too
    logging.basicConfig(level=logging.INFO, handlers=[handler := logging.StreamHandler()])
    handler.setFormatter(JsonLines())
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs each request

    from recallog.index_service.host import serve

    serve(listener)
