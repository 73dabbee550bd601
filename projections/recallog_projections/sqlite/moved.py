"""The signal that a file must be opened again."""


class FileMoved(Exception):
    """A file or its write-ahead log was replaced or written in a way that needs a new connection. The connection
    is closed, and the work was not done."""
