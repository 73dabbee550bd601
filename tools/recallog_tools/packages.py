"""Builds the packages that are released, installs each wheel in fresh venvs, and uses it there as a user would.

`PYTHONPATH=tools python -m recallog_tools.packages` writes the wheels and source archives to `build/dist`. Each
interpreter of `PYTHONS` that is found is tried; the exit code is 1 if one of them fails, or if none is found.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
DIST = REPOSITORY / "build" / "dist"
PYTHONS = ("python3.11", "python3.12", "python3.13")
ADAPTERS = sorted(path.parent for path in (REPOSITORY / "adapters").glob("*/pyproject.toml"))
_SECONDS = 900
_STORY = (
    ("publish", "village", "baker", "world.observed", "The mill burned.", "--id", "fire-1"),
    ("episodic", "village", "baker"),
    ("recall", "village", "baker", "Was there a fire?", "--wait"),
    ("verify",),
)
"""Commands after which a user knows that an installation works: the ledger, the views, the model and the engine."""
_PROGRAM = """
from recallog.sync import Memory
with Memory.open() as memory:
    assert "The mill burned." in memory.episodic("village", "miller").format()
"""


def build() -> list[Path]:
    """The wheels of all packages, the one of Recallog first, built from their source archives."""
    shutil.rmtree(DIST, ignore_errors=True)
    for project in (REPOSITORY, *ADAPTERS):
        _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(DIST), str(project))
    return sorted(DIST.glob("*.whl"), key=lambda wheel: (not wheel.name.startswith("recallog-"), wheel.name))


def check_sources() -> None:
    """Raise `SystemExit` if the source archive has a file that is not versioned, such as one of a venv."""
    (archive,) = DIST.glob("recallog-[0-9]*.tar.gz")
    listed = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, check=True, text=True)
    with tarfile.open(archive) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    if others := sorted(names - {*listed.stdout.splitlines(), "PKG-INFO"}):
        raise SystemExit(f"{archive.name} has {len(others)} files that are not versioned, such as {others[0]}")


def try_in(python: str, wheel: Path, folder: Path) -> None:
    """Install the wheel in a new venv of an interpreter, without the repository, and follow the story."""
    venv, home = folder / "venv", folder / "home"
    _run(python, "-m", "venv", str(venv))
    _run(str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel))
    for words in _STORY:
        _run(str(venv / "bin" / "recallog"), *words, cwd=folder, home=home)
    _run(str(venv / "bin" / "python"), "-c", _PROGRAM, cwd=folder, home=home)


def found_pythons() -> Sequence[str]:
    """The interpreters that can be tried here. A name may be a stub that only says how to install one."""
    return [each for each in PYTHONS if shutil.which(each) and _answers(each)]


def _answers(python: str) -> bool:
    return subprocess.run([python, "-V"], capture_output=True, check=False).returncode == 0


def _run(*words: str, cwd: Path = REPOSITORY, home: Path | None = None) -> None:
    more = {} if home is None else {"RECALLOG_HOME": str(home)}
    subprocess.run(words, cwd=cwd, env={**os.environ, **more}, check=True, timeout=_SECONDS)


def main() -> int:
    wheel = build()[0]
    check_sources()
    pythons = found_pythons()
    for python in pythons:
        # The process of the index may write to the folder while it is removed.
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            try_in(python, wheel, Path(folder))
        print(f"{wheel.name} works in a fresh venv of {python}")
    return 0 if pythons else 1


if __name__ == "__main__":
    sys.exit(main())
