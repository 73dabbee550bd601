"""`python -m recallog.index`: the process that keeps the index of a folder. Memories start it themselves."""

from recallog.index.service import main

main()
