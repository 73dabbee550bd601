"""Files of words of several languages: sections of patterns or tables, each below its name in brackets."""

import re
from collections.abc import Sequence
from pathlib import Path


def read_sections(file: str) -> Sequence[tuple[str, str]]:
    """The names and texts of the sections of a file of this folder, in order. Lines that begin with # are comments."""
    text = re.sub(r"^#.*\n", "", Path(__file__).with_name(file).read_text("utf-8"), flags=re.MULTILINE)
    _, *parts = re.split(r"^\[([\w: ]+)\]\n", text, flags=re.MULTILINE)
    return list(zip(parts[::2], map(str.strip, parts[1::2]), strict=True))
