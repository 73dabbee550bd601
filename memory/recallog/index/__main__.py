"""`python -m recallog.index`: starts the index service of a folder. A memory starts it when it needs it."""

from recallog.index.service import main

main()
