"""Reading and writing of models in ONNX form: what a model of few kinds of operators needs.

The file is a protocol buffer (onnx.proto of the ONNX project); the numbers of fields are those of that schema.
"""

import struct
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Tensor: TypeAlias = NDArray[Any]
Attribute: TypeAlias = int | float | Sequence[int]

MICROSOFT = "com.microsoft"
"""The domain of onnxruntime's own operators."""
_KINDS: dict[np.dtype[Any], int] = {
    np.dtype(np.float32): 1,
    np.dtype(np.uint8): 2,
    np.dtype(np.int8): 3,
    np.dtype(np.int64): 7,
}
_OPSET = 17
_IR_VERSION = 8
_VARINT, _BYTES, _FIXED32 = 0, 2, 5


@dataclass(frozen=True, slots=True)
class Node:
    """An operator of a graph."""

    operator: str
    inputs: Sequence[str]
    outputs: Sequence[str]


@dataclass(frozen=True, slots=True)
class OnnxGraph:
    """The constants and operators of a model."""

    tensors: Mapping[str, Tensor]
    nodes: Sequence[Node]


def read(model: bytes) -> OnnxGraph:
    """The graph of a serialized model; tensors of other types than `write` can write are left out."""
    (graph,) = (content for field, content in _fields(memoryview(model)) if field == 7)
    tensors: dict[str, Tensor] = {}
    nodes: list[Node] = []
    types: dict[int, np.dtype[Any]] = {number: kind for kind, number in _KINDS.items()}
    for field, content in _fields(graph):
        if field not in (1, 5):
            continue
        parts: defaultdict[int, list[Any]] = defaultdict(list)
        for number, value in _fields(content):
            parts[number].append(value)
        if field == 1:
            inputs, outputs = ([bytes(name).decode() for name in parts[number]] for number in (1, 2))
            nodes.append(Node(bytes(parts[4][0]).decode(), inputs, outputs))
        elif parts[9] and parts[2][0] in types:
            values = np.frombuffer(parts[9][0], types[parts[2][0]])
            tensors[bytes(parts[8][0]).decode()] = values.reshape(parts[1])
    return OnnxGraph(tensors, nodes)


class GraphWriter:
    """Collects the constants and operators of a new model."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._tensors: dict[str, bytes] = {}

    def constant(self, name: str, values: Tensor) -> str:
        """Add a constant, or one of the same name again; return its name."""
        shape = b"".join(_number(1, size) for size in values.shape)
        content = np.ascontiguousarray(values).tobytes()
        self._tensors[name] = shape + _number(2, _KINDS[values.dtype]) + _text(8, name) + _bytes(9, content)
        return name

    def apply(
        self, operator: str, *inputs: str, domain: str = "", outputs: Sequence[str] = (), **attributes: Attribute
    ) -> str:
        """Add an operator; return the name of its first output, which is made up without `outputs`."""
        names = outputs or (f"{operator}_{len(self._nodes)}",)
        content = [_text(1, name) for name in inputs] + [_text(2, name) for name in names] + [_text(4, operator)]
        content += [_bytes(5, _attribute(name, value)) for name, value in attributes.items()]
        self._nodes.append(b"".join([*content, _text(7, domain)] if domain else content))
        return names[0]

    def serialize(self, inputs: Sequence[str], output: str, dimension: int) -> bytes:
        """The model: `inputs` are int64 (batch, sequence), `output` is float32 (batch, sequence, dimension)."""
        graph = [_bytes(1, node) for node in self._nodes] + [_text(2, "graph")]
        graph += [_bytes(5, tensor) for tensor in self._tensors.values()]
        graph += [_bytes(11, _value(name, np.dtype(np.int64), "batch", "sequence")) for name in inputs]
        graph.append(_bytes(12, _value(output, np.dtype(np.float32), "batch", "sequence", dimension)))
        opsets = _bytes(8, _number(2, _OPSET)) + _bytes(8, _text(1, MICROSOFT) + _number(2, 1))
        return _number(1, _IR_VERSION) + _bytes(7, b"".join(graph)) + opsets


def _fields(message: memoryview) -> Iterator[tuple[int, Any]]:
    """The number and the value of each field of a message."""
    position = 0
    while position < len(message):
        key, position = _read_varint(message, position)
        match key & 7:
            case 0:
                value, position = _read_varint(message, position)
                yield key >> 3, value
                continue
            case 1:
                length = 8
            case 2:
                length, position = _read_varint(message, position)
            case 5:
                length = 4
            case kind:
                raise ValueError(f"a field of type {kind}")
        yield key >> 3, message[position : position + length]
        position += length


def _read_varint(message: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[position]
        position += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, position


def _value(name: str, kind: np.dtype[Any], *shape: int | str) -> bytes:
    """A ValueInfoProto of a tensor."""
    sizes = (_number(1, size) if isinstance(size, int) else _text(2, size) for size in shape)
    tensor = _number(1, _KINDS[kind]) + _bytes(2, b"".join(_bytes(1, size) for size in sizes))
    return _text(1, name) + _bytes(2, _bytes(1, tensor))


def _attribute(name: str, value: Attribute) -> bytes:
    if isinstance(value, float):
        return _text(1, name) + _varint(2 << 3 | _FIXED32) + struct.pack("<f", value) + _number(20, 1)
    if isinstance(value, int):
        return _text(1, name) + _number(3, value) + _number(20, 2)
    return _text(1, name) + b"".join(_number(8, each) for each in value) + _number(20, 7)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3 | _VARINT) + _varint(value % (1 << 64))


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | _BYTES) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    groups = bytearray()
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    groups.append(value)
    return bytes(groups)
