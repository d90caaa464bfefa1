"""The reranker as an ONNX graph: the encoder's layers, then the head of `cross_encoder`.

Inputs as the encoder's; `token_type_ids` is 1 on the tool's tokens. Output: `logits`, float32
[batch, 1].
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto

from toolfinch_training.base_model import BertShape, Weights
from toolfinch_training.bert_graph import EncoderGraph
from toolfinch_training.linear_layers import LinearLayers

LOGITS = "logits"
HEAD = ("product.weight", "product.bias", "inner.weight", "inner.bias", "outer.weight")


def build_reranker(
    shape: BertShape,
    weights: Weights,
    linear: LinearLayers,
    *,
    max_tokens: int,
    int8_embeddings: bool,
) -> onnx.ModelProto:
    """The finished and checked model; `weights` hold the encoder's and the head's (`HEAD`)."""
    return _RerankerGraph(shape, weights, linear, max_tokens, int8_embeddings).build()


class _RerankerGraph(EncoderGraph):
    def _finish(self, hidden: str) -> onnx.ModelProto:
        graph = self._graph
        mask = graph.node("Cast", ["attention_mask"], "mask_float", to=TensorProto.FLOAT)
        types = graph.node("Cast", ["token_type_ids"], "types_float", to=TensorProto.FLOAT)
        second = graph.node("Mul", [mask, types], "tool_mask")
        first = graph.node("Sub", [mask, second], "query_mask")
        query = self._pool(hidden, first, "query_", "query_vector")
        tool = self._pool(hidden, second, "tool_", "tool_vector")
        product = graph.node("Mul", [query, tool], "product")
        difference = graph.node("Sub", [query, tool], "difference")
        distance = graph.node("Abs", [difference], "distance")
        features = graph.node("Concat", [product, distance], "features", axis=-1)
        inner = graph.node("Tanh", [self._linear_head(features, "inner")], "inner_tanh")
        outer = graph.node("MatMul", [inner, self._transposed("outer")], "outer_value")
        graph.node("Add", [self._linear_head(product, "product"), outer], LOGITS)
        return self._model("reranker", LOGITS, 1)

    def _linear_head(self, value: str, name: str) -> str:
        bias = self._graph.constant(f"head_{name}.bias", self._weights[f"{name}.bias"])
        multiplied = self._graph.node(
            "MatMul", [value, self._transposed(name)], f"{name}_multiplied"
        )
        return self._graph.node("Add", [multiplied, bias], f"{name}_value")

    def _transposed(self, name: str) -> str:
        weight = np.ascontiguousarray(self._weights[f"{name}.weight"].T)
        return self._graph.constant(f"head_{name}.weight", weight)
