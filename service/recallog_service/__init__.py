"""The service: command line, worker process, ingest formats, evaluation and demo."""
