"""A real Apache Kafka and a real Redis as local processes, for `make cluster` and the live tests.

They listen on 127.0.0.1 only, store their data in a given folder, and end with the process that started them.
"""

from deploy.local.kafka.server import LocalKafka
from deploy.local.redis import LocalRedis
from deploy.local.server import LocalServer, LocalServerError, NotInstalled

__all__ = ["LocalKafka", "LocalRedis", "LocalServer", "LocalServerError", "NotInstalled"]
