"""The environment in which the commands of a tutorial run, and the transcript with which they are compared."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from recallog_tools.transcripts import SETUP, TRANSCRIPTS
from support.cli import environment_of


def environment_in(folder: Path) -> Mapping[str, str]:
    """A home below `folder`, and the commands of this interpreter."""
    home, bin_ = folder / "home", folder / "bin"
    home.mkdir()
    bin_.mkdir()
    for name, words in (("recallog", "-m recallog_service"), ("python", "")):
        (bin_ / name).write_text(f'#!/bin/sh\nexec {sys.executable} {words} "$@"\n')
        (bin_ / name).chmod(0o755)
    path = f"{bin_}{os.pathsep}{os.environ['PATH']}"
    return environment_of(PATH=path, HOME=str(home), COLUMNS="120", RECALLOG_INDEX="off")


def recorded(page: Path) -> str:
    """The transcript of a tutorial, without the commands that prepare the machine."""
    lines = (TRANSCRIPTS / f"{page.stem}.txt").read_text().splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith(tuple(f"$ {each}" for each in SETUP)))
