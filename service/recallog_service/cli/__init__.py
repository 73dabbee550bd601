"""The command line: `recallog --help`."""

from recallog_service.cli.app import app, main

__all__ = ["app", "main"]
