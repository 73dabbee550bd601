"""Control characters in texts of agents, which could change what a terminal shows."""

import re

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def harmless(text: str) -> str:
    """The text with its control characters written out, for example "\\x1b"."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
