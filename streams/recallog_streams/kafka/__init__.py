"""The ledger on Apache Kafka: one topic, as many partitions as it was created with."""
