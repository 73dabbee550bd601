"""mem0 as the index that measures the relevance of events: `Memory.open(index=Mem0Index.local("./mem0"))`."""

from recallog_mem0.index import Mem0Index

__all__ = ["Mem0Index"]
