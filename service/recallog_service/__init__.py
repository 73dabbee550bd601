"""The service: command line, server, worker process, ingest formats and demo."""
