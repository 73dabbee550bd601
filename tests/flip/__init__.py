"""Damaged folders: random bytes of every file of a memory's folder are changed, then every operation is called.

Each answer must be right, or an error of Recallog that names the file and what to do. Run it with `make flip`:

* `story` has the events, `folders` writes the folders that are damaged: closed, killed, and behind the ledger.
* `mutations` draws one damage from a seed; `questions` has the calls, at least one for each operation.
* `trial` executes one trial in a process of its own, and `judge` compares its answers with those of a whole folder.
* `run` starts the processes, `report` counts.
"""

import os

# Read when numpy is imported. The process that forks must have no other threads, and no child needs more than one.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
