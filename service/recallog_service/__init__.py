"""The doors: command line, ingest formats, and the demo."""
