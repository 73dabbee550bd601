"""all-MiniLM-L6-v2 with products of 8-bit integers: the weights of the published model in another graph.

The published model stores its weights in 8 bits and computes with them in 32. This graph multiplies the stored weights
with 8-bit activations, which processors with instructions for it do three times as fast. Each token's activations have
a scale of their own, so that a text's vectors do not depend on the other texts of a batch. The activations from which
attention is computed lose most by 8 bits and are multiplied in two terms of 8 bits.
"""

from collections.abc import Mapping
from functools import cache

import numpy as np

from recallog_projections.index.embedders.onnx_file import MICROSOFT, GraphWriter, OnnxGraph, Tensor, read
from recallog_projections.index.embedders.runtime import imported_onnxruntime

_LAYERS = 6
_HEADS = 12
_DIMENSION = 384
_EPSILON = 1e-12
_HALF = 127
"""The quantised activations of a token are from 1 to 255, the largest at one end; 128 is 0."""
_EMBEDDINGS = "inner.embeddings."


def integer_graph(published: bytes) -> bytes:
    """The model, with the inputs `input_ids` and `attention_mask` and the output `last_hidden_state`."""
    graph = read(published)
    weights = _weights_of(graph)
    made = GraphWriter()
    return with_layers(made, _add_embedding(made, graph), graph.tensors, weights, _LAYERS)


def with_layers(
    made: GraphWriter,
    states: str,
    tensors: Mapping[str, Tensor],
    weights: Mapping[str, tuple[Tensor, Tensor]],
    layers: int,
) -> bytes:
    """The model whose `states` before the first layer are in `made`, with `layers` more of all-MiniLM-L6-v2's form.

    `tensors` have the names of that model. `weights` has by the name of a bias the matrix whose product it is added to,
    (inputs, outputs) in int8 with the scales of its columns, or in float32.
    """
    made.constant("activation_scale", np.array(1 / _HALF, np.float32))
    made.constant("activation_zero", np.array(_HALF + 1, np.uint8))
    # Quantisation leaves at most half a step.
    made.constant("rest_scale", np.array(0.5 / _HALF / _HALF, np.float32))
    mask = made.apply("Cast", "attention_mask", to=6)
    for layer in range(layers):
        states = _layer(made, tensors, weights, f"inner.encoder.layer.{layer}.", states, mask)
    made.apply("Identity", states, outputs=["last_hidden_state"])
    return made.serialize(["input_ids", "attention_mask"], "last_hidden_state", _DIMENSION)


@cache
def exact_products() -> bool:
    """Whether this processor's products of 8-bit integers are exact: without instructions for them, sums saturate."""
    onnxruntime = imported_onnxruntime()
    largest = np.full((_DIMENSION, _DIMENSION), _HALF, np.int8)
    made = GraphWriter()
    made.constant("one", np.array(1, np.float32))
    made.constant("zero", np.array(0, np.uint8))
    made.constant("largest", largest)
    made.constant("scales", np.ones(_DIMENSION, np.float32))
    row = made.apply("Cast", made.apply("Unsqueeze", "input_ids", made.constant("axis", np.array([2]))), to=1)
    wide = made.apply("Expand", row, made.constant("shape", np.array([1, 1, _DIMENSION])))
    quantised = made.apply("QuantizeLinear", wide, "one", "zero")
    made.apply(
        "MatMulIntegerToFloat", quantised, "largest", "one", "scales", "zero", domain=MICROSOFT, outputs=["products"]
    )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    model = made.serialize(["input_ids"], "products", _DIMENSION)
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"input_ids": np.full((1, 8), 255)})
    return bool((found == 255 * _HALF * _DIMENSION).all())


def _weights_of(graph: OnnxGraph) -> dict[str, tuple[Tensor, Tensor]]:
    """By the name of a bias: the matrix whose product it is added to, (inputs, outputs), and the scales of its columns.

    Matrices have no meaningful names in the published model.
    """
    product_of = {node.outputs[0]: node.inputs[1] for node in graph.nodes if node.operator == "MatMul"}
    return {
        bias: (graph.tensors[f"{matrix}_q"], graph.tensors[f"{matrix}_scale"].reshape(-1))
        for node in graph.nodes
        if node.operator == "Add"
        and (matrix := product_of.get(node.inputs[0]))
        and (bias := node.inputs[1]) in graph.tensors
    }


def _add_embedding(made: GraphWriter, graph: OnnxGraph) -> str:
    """The states before the first layer."""
    tensors = {name.removeprefix(_EMBEDDINGS): tensor for name, tensor in graph.tensors.items()}
    words = made.constant("words", tensors["word_embeddings.weight_q"])
    scales = made.constant("word_scales", tensors["word_embeddings.weight_scale"])
    positions = tensors["position_embeddings.weight_q"] * tensors["position_embeddings.weight_scale"]
    # All texts are of type 0.
    positions = (positions + tensors["token_type_embeddings.weight"][0]).astype(np.float32)
    of_words = made.apply("Cast", made.apply("Gather", words, "input_ids"), to=1)
    scaled = made.apply("Mul", of_words, made.apply("Gather", scales, "input_ids"))
    return with_positions(made, scaled, positions, tensors["LayerNorm.weight"], tensors["LayerNorm.bias"])


def with_positions(made: GraphWriter, of_words: str, positions: Tensor, gain: Tensor, bias: Tensor) -> str:
    """The states before the first layer: those of the words plus those of their positions, (positions, dimension),
    normalised."""
    start, length = made.constant("start", np.array([0])), made.apply("Shape", "input_ids", start=1, end=2)
    of_positions = made.apply("Slice", made.constant("positions", positions), start, length)
    whole = made.apply("Add", of_words, of_positions)
    first_gain, first_bias = made.constant("first_gain", gain), made.constant("first_bias", bias)
    return made.apply("LayerNormalization", whole, first_gain, first_bias, axis=-1, epsilon=_EPSILON)


def _layer(
    made: GraphWriter,
    tensors: Mapping[str, Tensor],
    weights: Mapping[str, tuple[Tensor, Tensor]],
    prefix: str,
    states: str,
    mask: str,
) -> str:
    """The states after a layer."""

    def constant(name: str) -> str:
        return made.constant(prefix + name, tensors[prefix + name])

    def product(factor: str, name: str, *biases: str, twice: bool = False) -> str:
        found = [weights[prefix + bias] for bias in biases]
        matrix, scales = (np.concatenate(parts, axis=-1) for parts in zip(*found, strict=True))
        return _product(made, factor, prefix + name, matrix, scales, twice=twice)

    def add_normalisation(product: str, residual: str, name: str) -> str:
        # onnxruntime's SkipLayerNormalization, which fuses the three, takes three times as long.
        whole = made.apply("Add", made.apply("Add", product, constant(f"{name}.dense.bias")), residual)
        gain, bias = constant(f"{name}.LayerNorm.weight"), constant(f"{name}.LayerNorm.bias")
        return made.apply("LayerNormalization", whole, gain, bias, axis=-1, epsilon=_EPSILON)

    biases = [f"attention.self.{name}.bias" for name in ("query", "key", "value")]
    together = made.constant(prefix + "biases", np.concatenate([tensors[prefix + bias] for bias in biases]))
    parts = [f"{prefix}{name}" for name in ("query", "key", "value")]
    sizes = made.constant("sizes", np.array([_DIMENSION] * 3))
    made.apply("Split", product(states, "attention", *biases, twice=True), sizes, outputs=parts, axis=-1)
    attended = made.apply("MultiHeadAttention", *parts, together, mask, domain=MICROSOFT, num_heads=_HEADS)
    attention = "attention.output"
    states = add_normalisation(product(attended, attention, f"{attention}.dense.bias"), states, attention)
    wide = made.apply(
        "BiasGelu",
        product(states, "intermediate", "intermediate.dense.bias"),
        constant("intermediate.dense.bias"),
        domain=MICROSOFT,
    )
    return add_normalisation(product(wide, "output", "output.dense.bias"), states, "output")


def _product(made: GraphWriter, factor: str, name: str, matrix: Tensor, scales: Tensor, *, twice: bool = False) -> str:
    """The product of the activations `factor` and a quantised matrix with a scale for each column.

    A matrix in float32 is multiplied as it is. With `twice`, what the quantisation of the activations leaves is
    quantised again, and both products are added.
    """
    made.constant(f"{name}.matrix", matrix)
    if matrix.dtype == np.float32:
        return made.apply("MatMul", factor, f"{name}.matrix")
    made.constant(f"{name}.scales", scales)
    # The largest activation of each token becomes 1 or -1.
    largest = made.apply("ReduceMax", made.apply("Abs", factor), axes=[-1], keepdims=1)
    relative = made.apply("Div", factor, largest)
    quantised = made.apply("QuantizeLinear", relative, "activation_scale", "activation_zero")
    products = _integer_product(made, quantised, name, "activation_scale")
    if twice:
        kept = made.apply("DequantizeLinear", quantised, "activation_scale", "activation_zero")
        rest = made.apply("Sub", relative, kept)
        again = made.apply("QuantizeLinear", rest, "rest_scale", "activation_zero")
        products = made.apply("Add", products, _integer_product(made, again, name, "rest_scale"))
    return made.apply("Mul", products, largest)


def _integer_product(made: GraphWriter, quantised: str, name: str, scale: str) -> str:
    return made.apply(
        "MatMulIntegerToFloat",
        quantised,
        f"{name}.matrix",
        scale,
        f"{name}.scales",
        "activation_zero",
        domain=MICROSOFT,
    )
