"""A copy of the repository without some memory models, where the tests run that do not need them.

`make without MODEL=tiers` copies it without tiers and the models that are built on them, and runs the tests there.
`make without` runs each test once, in a copy that has only the models that the test names and those that they are
built on: it then passes without any of the others. Left out are tests of a real cluster, of crashes and of malformed
inputs, which take long, and those that need all models.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

import recallog
from support import needed_models

ROOT = Path(__file__).parents[2]
LAYERS = ("schemas/recallog_schemas", "projections/recallog_projections", "memory/recallog", "service/recallog_service")
LIST = "schemas/recallog_schemas/models/__init__.py"
NO_TESTS = int(pytest.ExitCode.NO_TESTS_COLLECTED)
FOLDERS = ("tests/unit", "tests/contract", "tests/golden", "tests/simulation")

_SOURCES = ("schemas", "projections", "streams", "memory", "service")
_NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv*", ".cluster", ".*_cache", ".hypothesis", "build", "node_modules",
    "*.pyc.*",  # what another process compiles just now; what is compiled is copied: compiling takes most of a run
)  # fmt: skip


def left_out(names: Iterable[str]) -> frozenset[str]:
    """The models of these names, and those that are built on them."""
    gone = set(names)
    for model in recallog.MODELS:  # each is listed after those that it is built on
        if gone.intersection(model.after):
            gone.add(model.name)
    return frozenset(gone)


def copy_without(names: Iterable[str], folder: Path) -> None:
    """Copy the repository to `folder`, without the folders of models and their lines in the list of models."""
    shutil.copytree(ROOT, folder, ignore=_NOT_COPIED, dirs_exist_ok=True)
    gone = left_out(names)
    for layer in LAYERS:
        for name in gone:
            shutil.rmtree(folder / layer / "models" / name, ignore_errors=True)
    line = re.compile(rf'    "({"|".join(gone)})",')
    path = folder / LIST
    path.write_text("".join(each for each in path.read_text().splitlines(True) if not line.fullmatch(each.rstrip())))


def run(folder: Path, *arguments: str, capture: bool = True, **more: str) -> "subprocess.CompletedProcess[str]":
    """Run Python in a copy, with the packages of the copy, and with `more` variables in its environment."""
    packages = [*(folder / source for source in _SOURCES), *(folder / "adapters").iterdir()]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, packages)), "RECALLOG_INDEX": "off"} | more
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=capture, text=True, check=False
    )


def main(names: Sequence[str]) -> int:
    known = {each.name for each in recallog.MODELS}
    if not known.issuperset(names):
        sys.stderr.write(f"name memory models: make without MODEL={'|'.join(sorted(known))}\n")
        return 2
    if names:
        return tests_without(names, FOLDERS)
    failed = 0
    for needed, paths in needed_models.combinations().items():
        files = [str(path) for path in (each.relative_to(ROOT) for each in paths) if str(path).startswith(FOLDERS)]
        if files and needed != known:
            failed |= tests_without(known - needed, [needed_models.JUST_THESE, *files])
    return failed


def tests_without(names: Iterable[str], arguments: Iterable[str]) -> int:
    """Run tests in a copy without models. Returns 1 if any fails."""
    with tempfile.TemporaryDirectory(prefix="recallog-without-") as folder:
        Path(folder).chmod(0o755)  # some tests read it as another user
        copy_without(names, Path(folder))
        sys.stdout.write(f"without {', '.join(sorted(left_out(names)))}:\n")
        sys.stdout.flush()
        tests = ("-m", "pytest", "-q", "-n", "logical", "--maxprocesses", "4", "--no-loadscope-reorder", *arguments)
        return int(run(Path(folder), *tests, capture=False).returncode not in (0, NO_TESTS))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
