"""Executes a command that the kernel kills when the process that started it ends.

`spawning.py` runs this as a script, with the starter's pid and the command as arguments. It is not a `preexec_fn`,
because that is unsafe in a process with threads. On systems other than Linux it only executes the command.
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
        if os.getppid() != starter:  # the starter ended before the call
            sys.exit(1)
    os.execvp(command[0], command)


main()
