"""The ledger on Kafka."""
