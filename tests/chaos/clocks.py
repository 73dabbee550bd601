"""Jumps of the wall clock of single processes, by a shim that is compiled and preloaded; see `clock.c`."""

import shutil
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

from deploy.local import LocalKafka, LocalRedis

_SOURCE = Path(__file__).with_name("clock.c")
_COMPILER = "cc"
_SECOND = 1_000_000_000


class Clock:
    """The wall clock of a process."""

    def __init__(self, folder: Path, shim: Path) -> None:
        """
        Args:
            folder: an existing folder for the file with the shift.
            shim: what `compile_shim` has returned.
        """
        self._file = folder / "clock"
        self._shim = shim
        self.jump(0.0)

    @property
    def environment(self) -> Mapping[str, str]:
        """What a process needs so that it has this clock."""
        return {"LD_PRELOAD": str(self._shim), "CHAOS_CLOCK": str(self._file)}

    def jump(self, seconds: float) -> None:
        """Set how far this clock is ahead of the machine's."""
        with self._file.open("r+b" if self._file.exists() else "w+b") as file:
            file.write(struct.pack("=q", round(seconds * _SECOND)))


def compile_shim(folder: Path) -> Path | None:
    """The shim, in `folder`; None where there is no C compiler: clocks do not jump then."""
    if shutil.which(_COMPILER) is None:
        return None
    shim = folder / "clock.so"
    subprocess.run([_COMPILER, "-shared", "-fPIC", "-O2", "-o", shim, _SOURCE], check=True)
    return shim


class JumpingRedis(LocalRedis):
    """A Redis with a clock of its own."""

    clock: Clock | None = None

    def _command(self) -> list[str]:
        return _command_with(self.clock, super()._command())


class JumpingKafka(LocalKafka):
    """A broker with a clock of its own."""

    clock: Clock | None = None

    def _command(self) -> list[str]:
        return _command_with(self.clock, super()._command())


def _command_with(clock: Clock | None, command: list[str]) -> list[str]:
    if clock is None:
        return command
    return ["env", *(f"{name}={value}" for name, value in clock.environment.items()), *command]
