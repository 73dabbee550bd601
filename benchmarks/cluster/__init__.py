"""Benchmarks of a cluster: a real Kafka, a real Redis and real worker processes. `python -m benchmarks.cluster`."""
