"""The page of an adapter: its README, whose program prints what the page says."""

import os
import re
import subprocess
import sys
from pathlib import Path


class Page:
    def __init__(self, test: str) -> None:
        """`test` is a file among the tests of the adapter."""
        self._text = (Path(test).parents[1] / "README.md").read_text()

    def block(self, language: str) -> str:
        """The one block of the page in this language."""
        (found,) = re.findall(rf"```{language}\n(.*?)```", self._text, re.DOTALL)
        return str(found)

    def printed(self, folder: Path, **environment: str) -> str:
        """What the program of the page prints, if it runs in `folder`."""
        command = [sys.executable, "-c", self.block("python")]
        done = subprocess.run(
            command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, timeout=200
        )
        assert done.returncode == 0, done.stderr
        return done.stdout
