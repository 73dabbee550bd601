"""The start of the process that serves indexes: its lock, and its address.

Imports are late: the process says who it is before it imports the engine and the model.
"""

import logging
import os

from recallog.index import hosting, messages

LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"
FORMER_SECONDS = 5.0
"""How long a process waits for the end of the one before, which answers nobody any more."""


def main() -> None:
    """Serve folders, first that of the request on standard input, until none is served any more.

    If another process does so, it is handed the request.
    """
    from recallog_projections import private_files

    os.umask(private_files.UMASK)  # the engine's library creates files too
    logging.basicConfig(level=logging.INFO, format=LOG_FORMAT)
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs each request
    place = hosting.find_place()
    try:
        with private_files.hold_lock(place.lock, FORMER_SECONDS):
            messages.write_address(place.address, messages.ServiceAddress(0, "", os.getpid()))
            try:
                from recallog.index_service.host import serve

                serve(place)
            finally:
                place.address.unlink(missing_ok=True)
    except private_files.LockHeld:
        hosting.hand_over(place)
