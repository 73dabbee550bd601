"""The page of the package is true: its program prints what the page says."""

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).parents[1] / "README.md").read_text()


def block(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


def printed(folder: Path, **environment: str) -> str:
    """What the program of the page prints."""
    command = [sys.executable, "-c", block("python")]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_program_of_the_page_prints_what_it_says(tmp_path: Path) -> None:
    assert printed(tmp_path) == block("text")
