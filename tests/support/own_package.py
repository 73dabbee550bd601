"""Packages that are built and installed into a venv of their own, such as the memory model of the guide."""

import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from support import shared_engine

GUIDE = (Path(__file__).parents[2] / "docs" / "extending" / "memory-model.md").read_text()
PROJECT = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)[0]
MODULE = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)[0]


def installed(folder: Path) -> Path:
    """The interpreter of a venv that has the package, everything that this one has, and the engine for tests."""
    package = folder / "package"
    package.mkdir()
    (package / "pyproject.toml").write_text(PROJECT)
    (package / "recallog_reminders.py").write_text(MODULE)
    return with_packages(folder, package)


def with_packages(folder: Path, *packages: Path) -> Path:
    """The interpreter of a venv that has packages, built as wheels, everything that this one has, and the engine for
    tests."""
    wheels, environment = folder / "wheels", folder / "venv"
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(wheels)]
    for package in packages:
        subprocess.run(command, cwd=package, check=True, capture_output=True)
    venv.create(environment, symlinks=True)
    python = environment / "bin" / "python"
    site = Path(sysconfig.get_path("purelib", vars={"base": str(environment), "platbase": str(environment)}))
    ours = sysconfig.get_path("purelib")
    (site / "ours.pth").write_text(f"import site; site.addsitedir({ours!r})\n")
    engine = site / "recallog_shared_engine-0.dist-info"
    engine.mkdir()
    (engine / "METADATA").write_text(shared_engine.METADATA)
    (engine / "entry_points.txt").write_text(shared_engine.ENTRY_POINTS)
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index"]
    subprocess.run([*install, *map(str, wheels.glob("*.whl"))], check=True, capture_output=True)
    return python


def output_of(python: Path, environment: dict[str, str], script: str, *arguments: str) -> str:
    """What a program prints."""
    command = [str(python), "-c", script, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
