"""Becomes the given command, after asking the kernel to kill it when its starter dies.

Run by `spawning.py` as a script, with the starter's pid and the command as arguments. A program of its own rather than
a `preexec_fn`, which is unsafe in a process with threads. Linux only: elsewhere the command just runs.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def main() -> None:
    starter, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != starter:  # it died before we asked
            sys.exit(1)
    os.execvp(command[0], command)


main()
