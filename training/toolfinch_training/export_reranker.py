"""A trained reranker as a model folder: ONNX int8, logits compared with PyTorch's float32."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper

from toolfinch_training.base_model import BaseModel, load_base_model
from toolfinch_training.bert_graph import INPUTS
from toolfinch_training.cross_encoder import CrossEncoder, Pair, Pairs, batch_of, score_pairs
from toolfinch_training.linear_layers import Float32Layers, LinearLayers, TokenwiseInt8Layers
from toolfinch_training.model_folder import (
    MAX_TOKENS,
    Kind,
    verify_model_folder,
    write_model_folder,
)
from toolfinch_training.rerank_graph import LOGITS, build_reranker
from toolfinch_training.tool_texts import tool_texts
from toolfinch_training.torch_encoder import Tokens

QUERY_TOKENS = 96
GRAPH_TOLERANCE = 2e-4
Logits = NDArray[np.float32]


@dataclass(frozen=True)
class RerankParity:
    """Largest differences in logits, and how often int8 keeps the order of two pairs."""

    graph_difference: float
    int8_difference: float
    same_order: float


class RerankerSession:
    """A reranker on onnxruntime's CPU provider."""

    def __init__(self, model: bytes, threads: int = 1) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            model, options, providers=["CPUExecutionProvider"]
        )

    def batch(self, pairs: Sequence[Pair]) -> Logits:
        """Logits [pairs] of pairs padded to the longest."""
        tokens, mask, segments = (value.numpy() for value in batch_of(pairs))
        feed = dict(zip(INPUTS, (tokens, mask, segments), strict=True))
        result: Logits = self._session.run([LOGITS], feed)[0][:, 0]
        return result

    def score(self, pairs: Sequence[Pair]) -> Logits:
        """Logits [pairs], one pair at a time."""
        return np.concatenate([self.batch([pair]) for pair in pairs])


def export_reranker(
    state_file: Path, out: Path, *, name: str, training: Mapping[str, Any]
) -> RerankParity:
    """Write the model folder, after the graph and its int8 form were compared with PyTorch."""
    saved = torch.load(state_file, weights_only=True)
    state = saved.get("model", saved)
    model = CrossEncoder()
    model.load_state_dict(state)
    model.train(False)
    weights = {
        key.removeprefix("bert."): np.ascontiguousarray(value.float().numpy())
        for key, value in state.items()
    }
    base = replace(load_base_model(), weights=weights)
    pairs = own_pairs()
    calibration, checked = pairs[::2], pairs[1::4]
    exact = build(base, Float32Layers(), int8_embeddings=False)
    ranges = _ranges(exact, calibration)
    with torch.inference_mode():
        expected = score_pairs(model, checked, bfloat16=False).numpy()
    difference = _largest(RerankerSession(exact.SerializeToString()).score(checked), expected)
    if not difference < GRAPH_TOLERANCE:
        raise SystemExit(f"the graph is off by {difference:.1e}, it does not compute the reranker")
    graph = build(base, TokenwiseInt8Layers(ranges), int8_embeddings=True).SerializeToString(
        deterministic=True
    )
    session = RerankerSession(graph)
    alone = session.score(checked)
    together = np.concatenate(
        [session.batch(checked[start : start + 8]) for start in range(0, len(checked), 8)]
    )
    write_model_folder(
        out,
        base,
        graph,
        batch_invariant=bool((alone == together).all()),
        kind=Kind(
            name=name, task="reranker", output=LOGITS, relevance_floor=None, training=training
        ),
    )
    verify_model_folder(out)
    return RerankParity(difference, _largest(alone, expected), same_order(alone, expected))


def build(base: BaseModel, linear: LinearLayers, *, int8_embeddings: bool) -> onnx.ModelProto:
    """The reranker's graph with one form of linear layers."""
    return build_reranker(
        base.shape, base.weights, linear, max_tokens=MAX_TOKENS, int8_embeddings=int8_embeddings
    )


def own_pairs() -> list[Pair]:
    """320 pairs of texts of our own: requests with tools that fit and that do not."""
    texts = tool_texts()
    tools, requests = texts[::2], texts[1::2]
    tokens = Tokens(MAX_TOKENS)
    pairs = Pairs(QUERY_TOKENS, MAX_TOKENS)
    tool_ids, request_ids = tokens.ids(tools), tokens.ids(requests)
    return [
        pairs.pair(request_ids[index], tool_ids[(index + shift) % len(tools)])
        for index in range(0, len(tools), 3)
        for shift in (0, 7)
    ]


def same_order(first: Logits, second: Logits) -> float:
    """The share of couples of pairs that both order alike (equal counts as alike)."""
    upper = np.triu_indices(len(first), 1)
    signs = [np.sign(values[:, None] - values[None, :])[upper] for values in (first, second)]
    return float((signs[0] == signs[1]).mean())


def _largest(first: Logits, second: Logits) -> float:
    return float(np.abs(first - second).max())


def _ranges(model: onnx.ModelProto, pairs: Sequence[Pair]) -> dict[str, Logits]:
    """max|X_j| of the input of every product of the layers, over pairs."""
    probed = onnx.ModelProto()
    probed.CopyFrom(model)
    names = sorted(
        {
            node.input[0]
            for node in model.graph.node
            if node.op_type == "MatMul" and not node.input[1].startswith("head_")
        }
    )
    for name in names:
        probed.graph.output.append(
            helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", "sequence", None])
        )
    session = onnxruntime.InferenceSession(
        probed.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    ranges: dict[str, Logits] = {}
    for pair in pairs:
        feed = dict(zip(INPUTS, (value.numpy() for value in batch_of([pair])), strict=True))
        for name, value in zip(names, session.run(names, feed), strict=True):
            peak = np.abs(value).max(axis=(0, 1))
            ranges[name] = np.maximum(ranges[name], peak) if name in ranges else peak
    return ranges
