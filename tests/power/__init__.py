"""Power failures: what a folder is like after one, at any moment of a recorded run, and whether Recallog recovers.

A program works with a folder under a shim (`shim.c`) that records each write, sync and change of a folder. From this
trace follows what the disk must have after a power failure at any moment, and what it may have beside that. Run it with
`make power`:

* `workload` is the program that is recorded, `recording` compiles the shim and runs it, `trace` reads the records.
* `disk` has the model of the disk: only what was synced is safe, in files and in folders.
* `recovery` opens a folder as it may be afterwards, and checks it.
* `campaign` draws moments and disks, `__main__` is the command.
"""
