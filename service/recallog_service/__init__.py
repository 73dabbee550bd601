"""The service: command line, server, worker process, and ingest formats."""
