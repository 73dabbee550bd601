"""Locks on open files: `flock`, or on Windows a locked byte.

No other module depends on the difference. Locks of both kinds end with their process, and with the closing of the
descriptor.
"""

import os
import sys

if sys.platform == "win32":
    import msvcrt

    def try_lock(descriptor: int) -> bool:
        """Lock a file for this descriptor; False if another one has locked it."""
        os.lseek(descriptor, 0, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

    def unlock(descriptor: int) -> None:
        """Release the lock of this descriptor."""
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def try_lock(descriptor: int) -> bool:
        """Lock a file for this descriptor; False if another one has locked it."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def unlock(descriptor: int) -> None:
        """Release the lock of this descriptor."""
        fcntl.flock(descriptor, fcntl.LOCK_UN)
