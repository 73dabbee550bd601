"""Where the points of a generation are on a Qdrant server, and the parameters of the collections there.

The generations of all partitions share one collection. Each point has the name of its generation as a tenant field, and
each generation has an alias, through which all calls about it go: a generation exists as long as its alias. Embedders
with vectors of another length, and other settings, have a collection of their own. A collection is deleted with its
last alias.

Earlier versions gave each generation a collection. Such a generation is served there until it is dropped.
"""

from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import blake2b
from typing import Any
from uuid import UUID

from qdrant_client import models as qdrant

from recallog_projections.index.engines.conditions import DENSE, MULTILINGUAL
from recallog_projections.index.engines.engine import FLOAT_FIELDS, INTEGER_FIELDS, KEYWORD_FIELDS
from recallog_projections.plugins import EngineSettings

VERSION_OF_TURBO8 = (1, 20)
"""The first version that stores vectors with 8 bits per number. On older ones they take twice the disk space."""

GENERATION = "generation"
"""The field of the payload with the name of the generation."""

_IDS = 2**128

FieldIndex = qdrant.KeywordIndexParams | qdrant.IntegerIndexParams | qdrant.FloatIndexParams


@dataclass(frozen=True)
class Tenancy:
    """The part of a collection that holds the points of one generation."""

    target: str
    """The alias of the generation, or the name of a collection of its own."""
    collection: str
    """The name of the collection."""
    name: str = ""
    """The name of the generation in `GENERATION`; "" in a collection of its own."""

    @cached_property
    def shift(self) -> int:
        """What is added to the ids of the generation, modulo 2**128. Generations have points with the same ids, which
        would replace each other. The sums have the order of the ids, except that they wrap around once."""
        return int.from_bytes(blake2b(self.name.encode(), digest_size=16).digest()) if self.name else 0

    def stored_id(self, id: str) -> str:  # noqa: A002
        """The id on the server of the point `id`."""
        return str(UUID(int=(UUID(id).int + self.shift) % _IDS))

    def id_of(self, stored: str) -> str:
        """The id of the point that the server has under `stored`."""
        return str(UUID(int=(UUID(stored).int - self.shift) % _IDS))

    def has_wrapped(self, stored: str) -> bool:
        """Whether the sum `stored` has wrapped around, so that it is smaller than that of the first id."""
        return UUID(stored).int < self.shift

    def conditions(self) -> list[qdrant.Condition]:
        """The conditions that select the points of the generation alone."""
        mine = qdrant.FieldCondition(key=GENERATION, match=qdrant.MatchValue(value=self.name))
        return [mine] if self.name else []


def id_after(id: str) -> str | None:  # noqa: A002
    """The next id in order; None after the last one."""
    number = UUID(id).int + 1
    return None if number == _IDS else str(UUID(int=number))


@dataclass(frozen=True, slots=True)
class CollectionForm:
    """What a collection is created with, and what its name follows from."""

    dimension: int
    multilingual: bool
    version: tuple[int, int]
    """The version of the server."""
    settings: EngineSettings

    @property
    def datatype(self) -> qdrant.Datatype:
        """Quantized vectors are compared first, and the best again with the numbers that are stored."""
        compact = self.version >= VERSION_OF_TURBO8 and self.settings.quantization == "none"
        return qdrant.Datatype.TURBO8 if compact else qdrant.Datatype.FLOAT16

    @property
    def name(self) -> str:
        """The name without prefix. Other parameters give another name, so that new generations get them."""
        replicas, shards, on_disk, quantization, _ = self.settings
        parts = (
            "multilingual" if self.multilingual else "",
            self.datatype.value,
            "" if quantization == "none" else quantization,
            "disk" if on_disk else "",
            f"r{replicas}" if replicas else "",
            f"s{shards}" if shards else "",
        )
        return f"points.{self.dimension}.{'.'.join(filter(None, parts))}"

    def parameters(self) -> dict[str, Any]:
        """The arguments of the client's `create_collection`."""
        # A graph for each space and none over all, since every search is within one space. Small spaces are searched
        # exactly. The embedder's vectors have length 1, so that the dot product is the cosine.
        on_disk = self.settings.on_disk or None
        dense = qdrant.VectorParams(
            size=self.dimension,
            distance=qdrant.Distance.DOT,
            datatype=self.datatype,
            on_disk=on_disk,
            multivector_config=qdrant.MultiVectorConfig(comparator=qdrant.MultiVectorComparator.MAX_SIM),
            hnsw_config=qdrant.HnswConfigDiff(m=0, payload_m=16, on_disk=on_disk),
            quantization_config=_QUANTIZATION[self.settings.quantization],
        )
        index = qdrant.SparseIndexParams(on_disk=True) if on_disk else None
        terms = qdrant.SparseVectorParams(index=index, modifier=qdrant.Modifier.IDF)
        return {
            "vectors_config": dict.fromkeys((DENSE, MULTILINGUAL) if self.multilingual else (DENSE,), dense),
            "sparse_vectors_config": {"terms": terms},
            "replication_factor": self.settings.replication_factor,
            "shard_number": self.settings.shard_number,
        }


_QUANTIZATION = {
    "none": None,
    "scalar": qdrant.ScalarQuantization(
        scalar=qdrant.ScalarQuantizationConfig(type=qdrant.ScalarType.INT8, always_ram=True)
    ),
}


def payload_indexes() -> dict[str, FieldIndex]:
    """The indexes of the fields that filters name. A server in strict mode refuses a filter on any other field."""
    keyword = partial(qdrant.KeywordIndexParams, type=qdrant.KeywordIndexType.KEYWORD)
    integer = qdrant.IntegerIndexParams(
        type=qdrant.IntegerIndexType.INTEGER, lookup=False, range=True, enable_hnsw=False
    )
    number = qdrant.FloatIndexParams(type=qdrant.FloatIndexType.FLOAT)
    return {
        **{field: keyword(is_tenant=field == "space", enable_hnsw=field == "space") for field in KEYWORD_FIELDS},
        GENERATION: keyword(is_tenant=True, enable_hnsw=False),
        **dict.fromkeys(INTEGER_FIELDS, integer),
        **dict.fromkeys(FLOAT_FIELDS, number),
    }
