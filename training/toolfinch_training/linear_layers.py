"""Ways to store and multiply a linear layer's weights: the candidates that the card compares."""

from __future__ import annotations

from typing import ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from toolfinch_training.graph_writer import MICROSOFT, GraphWriter
from toolfinch_training.quantisation import quantise_blocks, quantise_rows_for_pairs, smoothing

Role = Literal["attention_input", "attention_output", "feed_forward_input", "feed_forward_output"]
Matrices = list[tuple[str, NDArray[np.float32]]]


class LinearLayers(Protocol):
    """Adds the products of one activation with one or more weight matrices to a graph."""

    def multiply(self, graph: GraphWriter, value: str, matrices: Matrices, role: Role) -> list[str]:
        """Return the name of value @ weight.T for each (name, weight [N, K])."""
        ...


class Float32Layers:
    """Plain float32."""

    def multiply(self, graph: GraphWriter, value: str, matrices: Matrices, role: Role) -> list[str]:
        """See LinearLayers."""
        return [
            graph.node(
                "MatMul",
                [value, graph.constant(f"{name}.weight", np.ascontiguousarray(weight.T))],
                name,
            )
            for name, weight in matrices
        ]


class StoredInt8Layers:
    """int8 blocks on disk, turned to float32 by constant folding when the session loads."""

    def __init__(self, block_size: int) -> None:
        self._block_size = block_size

    def multiply(self, graph: GraphWriter, value: str, matrices: Matrices, role: Role) -> list[str]:
        """See LinearLayers."""
        return [self._one(graph, value, name, weight) for name, weight in matrices]

    def _one(self, graph: GraphWriter, value: str, name: str, weight: NDArray[np.float32]) -> str:
        quantised, scales = quantise_blocks(weight, self._block_size)
        shape = graph.constant(f"{name}.shape", np.array(weight.shape, np.int64))
        stored = graph.constant(f"{name}.weight", quantised)
        blocks = graph.node("Cast", [stored], f"{name}_blocks", to=TensorProto.FLOAT)
        scaled = graph.node(
            "Mul", [blocks, graph.constant(f"{name}.scale", scales)], f"{name}_scaled"
        )
        matrix = graph.node("Reshape", [scaled, shape], f"{name}_matrix")
        transposed = graph.node("Transpose", [matrix], f"{name}_transposed", perm=[1, 0])
        return graph.node("MatMul", [value, transposed], name)


class NBitsLayers:
    """onnxruntime's MatMulNBits with 8-bit blocks and int8 activations by block."""

    def __init__(self, block_size: int) -> None:
        self._block_size = block_size

    def multiply(self, graph: GraphWriter, value: str, matrices: Matrices, role: Role) -> list[str]:
        """See LinearLayers."""
        return [self._one(graph, value, name, weight) for name, weight in matrices]

    def _one(self, graph: GraphWriter, value: str, name: str, weight: NDArray[np.float32]) -> str:
        quantised, scales = quantise_blocks(weight, self._block_size)
        # The operator's default zero point is 128.
        shifted = (quantised.astype(np.int16) + 128).astype(np.uint8)
        return graph.node(
            "MatMulNBits",
            [
                value,
                graph.constant(f"{name}.weight", shifted),
                graph.constant(f"{name}.scale", scales.reshape(-1)),
            ],
            name,
            domain=MICROSOFT,
            K=weight.shape[1],
            N=weight.shape[0],
            bits=8,
            block_size=self._block_size,
            accuracy_level=4,
        )


class TokenwiseInt8Layers:
    """int8 weights with a scale an output, uint8 activations with a scale a token.

    The integer product is exact and a token's scale comes from that token alone, so a text's result
    owes nothing to the rest of its batch. Input channels are smoothed where that was measured to
    help. The input of the last product comes from GELU, whose values never fall below -0.17: a low
    zero point spends the range on the positive side.
    """

    SMOOTHING: ClassVar[dict[Role, float]] = {"attention_input": 0.9, "feed_forward_input": 0.55}
    CENTRE = 128
    GELU_MINIMUM = -0.17
    GELU_ZERO_POINT = 24

    def __init__(self, activation_ranges: dict[str, NDArray[np.float32]]) -> None:
        """`activation_ranges`: max|X_j| [K] of each product's input, by the input's name."""
        self._ranges = activation_ranges

    def multiply(self, graph: GraphWriter, value: str, matrices: Matrices, role: Role) -> list[str]:
        """See LinearLayers."""
        strength = self.SMOOTHING.get(role)
        if strength is not None:
            stacked = np.concatenate([weight for _, weight in matrices])
            factors = smoothing(self._ranges[value], stacked, strength)
            inverse = graph.constant(f"{value}.smoothing", np.float32(1) / factors)
            matrices = [(name, weight * factors) for name, weight in matrices]
            value = graph.node("Mul", [value, inverse], f"{value}_smoothed")
        if role == "feed_forward_output":
            quantised, scale, zero = self._quantise_gelu(graph, value)
        else:
            quantised, scale, zero = self._quantise_symmetric(graph, value)
        return [self._one(graph, quantised, scale, zero, name, weight) for name, weight in matrices]

    def _quantise_symmetric(self, graph: GraphWriter, value: str) -> tuple[str, str, str]:
        size = graph.node("Abs", [value], f"{value}_abs")
        peak = graph.node("ReduceMax", [size], f"{value}_peak", axes=[-1], keepdims=1)
        step = graph.constant("symmetric_step", np.array([1.0 / 127.0], np.float32))
        least = graph.constant("symmetric_least", np.array([1e-12], np.float32))
        upper = graph.node("Mul", [peak, step], f"{value}_upper")
        scale = graph.node("Max", [upper, least], f"{value}_scale")
        return self._quantise(graph, value, scale, self.CENTRE)

    def _quantise_gelu(self, graph: GraphWriter, value: str) -> tuple[str, str, str]:
        peak = graph.node("ReduceMax", [value], f"{value}_peak", axes=[-1], keepdims=1)
        step = graph.constant(
            "gelu_step", np.array([1.0 / (255 - self.GELU_ZERO_POINT)], np.float32)
        )
        least = graph.constant(
            "gelu_least", np.array([-self.GELU_MINIMUM / self.GELU_ZERO_POINT], np.float32)
        )
        upper = graph.node("Mul", [peak, step], f"{value}_upper")
        scale = graph.node("Max", [upper, least], f"{value}_scale")
        return self._quantise(graph, value, scale, self.GELU_ZERO_POINT)

    def _quantise(
        self, graph: GraphWriter, value: str, scale: str, zero_point: int
    ) -> tuple[str, str, str]:
        # QuantizeLinear takes no scale by token in this opset: divide first, then round at scale 1.
        divided = graph.node("Div", [value, scale], f"{value}_divided")
        one = graph.constant("unit_scale", np.float32(1))
        zero = graph.constant(f"zero_point_{zero_point}", np.uint8(zero_point))
        return graph.node("QuantizeLinear", [divided, one, zero], f"{value}_uint8"), scale, zero

    def _one(
        self,
        graph: GraphWriter,
        quantised: str,
        scale: str,
        zero: str,
        name: str,
        weight: NDArray[np.float32],
    ) -> str:
        rows, row_scales = quantise_rows_for_pairs(weight)
        stored = graph.constant(f"{name}.weight", np.ascontiguousarray(rows.T))
        by_output = graph.node(
            "MatMulIntegerToFloat",
            [
                quantised,
                stored,
                graph.constant("unit_scale", np.float32(1)),
                graph.constant(f"{name}.scale", row_scales),
                zero,
            ],
            f"{name}_by_output",
            domain=MICROSOFT,
        )
        return graph.node("Mul", [by_output, scale], name)
