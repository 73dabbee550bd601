"""The tier that runs on a real Apache Kafka and a real Redis; `conftest.py` finds or starts them."""
