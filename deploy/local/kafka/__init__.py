"""Apache Kafka as one local process: its jars, its settings and the process."""
