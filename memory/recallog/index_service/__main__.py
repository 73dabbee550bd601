"""`python -m recallog.index_service`: starts the process that serves indexes. A memory starts it when it needs it."""

from recallog.index_service.starting import main

main()
