"""The wheels: each has its own packages and nothing else, and that of Recallog is bounded."""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = [ROOT / each for each in PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]]
ADAPTERS = sorted(path.parent for path in (ROOT / "adapters").glob("*/pyproject.toml"))
IN_NO_WHEEL = ["recallog_tools", "tests", "benchmarks", "deploy", *(each.name.replace("-", "_") for each in ADAPTERS)]


def built(project: Path, into: Path) -> set[str]:
    """The files of the wheel of a project, without its metadata."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(into)]
    subprocess.run(command, cwd=project, check=True, capture_output=True, timeout=120)
    (wheel,) = into.glob("*.whl")
    with ZipFile(wheel) as files:
        return {name for name in files.namelist() if ".dist-info/" not in name}


def files_of(package: Path) -> set[str]:
    found = (path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(package.parent).as_posix() for path in found}


def test_the_wheel_has_the_five_packages_whole_and_nothing_else(tmp_path: Path) -> None:
    assert built(ROOT, tmp_path) == set().union(*map(files_of, PACKAGES))


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda path: path.name)
def test_the_wheel_of_an_adapter_has_its_package_whole_and_nothing_else(tmp_path: Path, adapter: Path) -> None:
    assert built(adapter, tmp_path) == files_of(adapter / adapter.name.replace("-", "_"))


def test_the_wheel_imports_nothing_that_is_not_in_it() -> None:
    for file in modules():
        assert not imported(file).intersection(IN_NO_WHEEL), file


def imported(file: Path) -> set[str]:
    """The packages that a module imports."""
    found: list[str] = []
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            found += [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append(node.module or "")
    return {name.partition(".")[0] for name in found}


def modules() -> Iterator[Path]:
    for package in PACKAGES:
        yield from package.rglob("*.py")
