"""A BERT sentence encoder as an ONNX graph, written node by node.

Writing the graph directly gives the fused operators that onnxruntime runs fastest, the same bytes
on every export, and the freedom to choose how each weight matrix is stored.

Inputs: `input_ids`, `attention_mask`, `token_type_ids`, int64 [batch, sequence].
Output: `sentence_embedding`, float32 [batch, hidden]: the mean of the last hidden states over the
unmasked tokens, scaled to unit length (Reimers and Gurevych 2019, arXiv:1908.10084).
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper

from toolfinch_training.base_model import BertShape, Weights
from toolfinch_training.graph_writer import MICROSOFT, GraphWriter
from toolfinch_training.linear_layers import LinearLayers, Matrices
from toolfinch_training.quantisation import quantise_rows

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
OUTPUT = "sentence_embedding"


def build_encoder(
    shape: BertShape,
    weights: Weights,
    linear: LinearLayers,
    *,
    max_tokens: int,
    int8_embeddings: bool,
) -> onnx.ModelProto:
    """The finished and checked model, for at most `max_tokens` tokens a text."""
    return EncoderGraph(shape, weights, linear, max_tokens, int8_embeddings).build()


class EncoderGraph:
    """Writes the graph layer by layer; what follows the last layer is `_finish`'s."""

    def __init__(
        self,
        shape: BertShape,
        weights: Weights,
        linear: LinearLayers,
        max_tokens: int,
        int8_embeddings: bool,
    ) -> None:
        self._shape = shape
        self._weights = weights
        self._linear = linear
        self._max_tokens = max_tokens
        self._int8_embeddings = int8_embeddings
        self._graph = GraphWriter()

    def build(self) -> onnx.ModelProto:
        """The finished and checked model."""
        hidden = self._embed()
        mask = self._graph.node("Cast", ["attention_mask"], "mask_int32", to=TensorProto.INT32)
        for layer in range(self._shape.layers):
            hidden = self._layer(layer, hidden, mask)
        return self._finish(hidden)

    def _finish(self, hidden: str) -> onnx.ModelProto:
        mask = self._graph.node("Cast", ["attention_mask"], "mask_float", to=TensorProto.FLOAT)
        self._pool(hidden, mask, "", OUTPUT)
        return self._model("sentence_encoder", OUTPUT, self._shape.hidden)

    def _model(self, name: str, output: str, columns: int) -> onnx.ModelProto:
        tokens = ["batch", "sequence"]
        return self._graph.finish(
            name,
            [helper.make_tensor_value_info(name, TensorProto.INT64, tokens) for name in INPUTS],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["batch", columns])],
        )

    def _embed(self) -> str:
        graph = self._graph
        words = self._embed_words()
        table = self._weights["embeddings.position_embeddings.weight"][: self._max_tokens]
        length = graph.node("Shape", ["input_ids"], "sequence_length", start=1, end=2)
        first = graph.constant("first_position", np.array([0], np.int64))
        position = graph.node(
            "Slice", [graph.constant("positions", table), first, length], "position"
        )
        types = self._weights["embeddings.token_type_embeddings.weight"]
        kind = graph.node(
            "Gather", [graph.constant("token_types", types), "token_type_ids"], "token_type"
        )
        with_kind = graph.node("Add", [words, kind], "word_and_type")
        with_position = graph.node("Add", [with_kind, position], "embedded")
        return graph.node(
            "LayerNormalization",
            [with_position, *self._norm("embeddings.LayerNorm")],
            "layer_0_input",
            epsilon=self._shape.epsilon,
            axis=-1,
        )

    def _embed_words(self) -> str:
        graph = self._graph
        table = self._weights["embeddings.word_embeddings.weight"]
        if not self._int8_embeddings:
            return graph.node("Gather", [graph.constant("words", table), "input_ids"], "word")
        quantised, scales = quantise_rows(table)
        rows = graph.node("Gather", [graph.constant("words", quantised), "input_ids"], "word_int8")
        scale = graph.node(
            "Gather", [graph.constant("words.scale", scales[:, None]), "input_ids"], "word_scale"
        )
        as_float = graph.node("Cast", [rows], "word_float", to=TensorProto.FLOAT)
        return graph.node("Mul", [as_float, scale], "word")

    def _layer(self, index: int, hidden: str, mask: str) -> str:
        graph = self._graph
        source = f"encoder.layer.{index}"
        name = f"layer_{index}"
        parts = ("query", "key", "value")
        attention: Matrices = [
            (f"{name}_{part}", self._weights[f"{source}.attention.self.{part}.weight"])
            for part in parts
        ]
        biases = [self._weights[f"{source}.attention.self.{part}.bias"] for part in parts]
        projected = self._linear.multiply(graph, hidden, attention, "attention_input")
        attended = graph.node(
            "MultiHeadAttention",
            [*projected, graph.constant(f"{name}_attention.bias", np.concatenate(biases)), mask],
            f"{name}_attention",
            domain=MICROSOFT,
            num_heads=self._shape.heads,
        )
        [mixed] = self._linear.multiply(
            graph,
            attended,
            [(f"{name}_mixed", self._weights[f"{source}.attention.output.dense.weight"])],
            "attention_output",
        )
        between = self._add_and_norm(mixed, hidden, f"{source}.attention.output", f"{name}_between")
        [inner] = self._linear.multiply(
            graph,
            between,
            [(f"{name}_inner", self._weights[f"{source}.intermediate.dense.weight"])],
            "feed_forward_input",
        )
        bias = graph.constant(
            f"{name}_inner.bias", self._weights[f"{source}.intermediate.dense.bias"]
        )
        activated = graph.node("BiasGelu", [inner, bias], f"{name}_gelu", domain=MICROSOFT)
        [outer] = self._linear.multiply(
            graph,
            activated,
            [(f"{name}_outer", self._weights[f"{source}.output.dense.weight"])],
            "feed_forward_output",
        )
        return self._add_and_norm(outer, between, f"{source}.output", f"layer_{index + 1}_input")

    def _add_and_norm(self, value: str, skip: str, source: str, output: str) -> str:
        bias = self._graph.constant(f"{source}.bias", self._weights[f"{source}.dense.bias"])
        return self._graph.node(
            "SkipLayerNormalization",
            [value, skip, *self._norm(f"{source}.LayerNorm"), bias],
            output,
            domain=MICROSOFT,
            epsilon=self._shape.epsilon,
        )

    def _norm(self, source: str) -> list[str]:
        return [
            self._graph.constant(f"{source}.{part}", self._weights[f"{source}.{part}"])
            for part in ("weight", "bias")
        ]

    def _pool(self, hidden: str, mask: str, prefix: str, output: str) -> str:
        """Masked sum, then unit length; dividing by the count would change nothing.

        A running sum adds token after token, so padding and batch size cannot change its last
        bits; ReduceSum and MatMul add in an order that depends on the shape.
        """
        graph = self._graph
        last_axis = graph.constant("last_axis", np.array([-1], np.int64))
        column = graph.node("Unsqueeze", [mask, last_axis], f"{prefix}mask_column")
        masked = graph.node("Mul", [hidden, column], f"{prefix}masked")
        axis = graph.constant("token_axis", np.int64(1))
        running = graph.node("CumSum", [masked, axis], f"{prefix}running_total")
        last = graph.constant("last_token", np.int64(-1))
        total = graph.node("Gather", [running, last], f"{prefix}total", axis=1)
        return graph.node("LpNormalization", [total], output, axis=-1, p=2)
