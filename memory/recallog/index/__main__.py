"""`python -m recallog.index HOME`: the process that keeps the index of a folder. Memories start it themselves."""

import sys

from recallog.index.service import main

main(sys.argv[1])
