"""A disk that is full for one process: a limit on the size of its files.

Each write that would make a file larger fails with EFBIG, an error of the disk as ENOSPC is. Small files are still
written, such as the logs of commands. Nothing needs rights that a user does not have, and other processes write on.
"""

import resource

_FULL_BYTES = 64 * 1024


def fill_disk(pid: int) -> None:
    """Let every write of a process that makes a file larger fail. Raises `ProcessLookupError` if it has ended."""
    _, most = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (_FULL_BYTES, most))


def free_disk(pid: int) -> None:
    """End what `fill_disk` began, unless the process has ended."""
    try:
        _, most = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, most))
    except ProcessLookupError:
        return
