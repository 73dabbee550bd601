"""`python -m recallog.index_service`: starts the index service of a folder. A memory starts it when it needs it."""

from recallog.index_service.starting import main

main()
