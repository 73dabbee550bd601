"""Apache Kafka as one local process: its jars, its settings, the process."""
