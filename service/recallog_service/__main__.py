"""`python -m recallog_service` is the `recallog` command."""

from recallog_service.cli import main

main()
