"""What a cluster costs: a real Kafka, a real Redis and real worker processes, measured side by side in one run."""
