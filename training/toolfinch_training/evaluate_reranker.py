"""Measure a reranker on test sets: the retriever's candidates, and the same reranked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from toolfinch_training.cross_encoder import Pairs
from toolfinch_training.evaluate_retriever import SEED, onnx_encode
from toolfinch_training.export_reranker import QUERY_TOKENS, RerankerSession
from toolfinch_training.model_folder import MAX_TOKENS, MODEL_FILE
from toolfinch_training.test_sets import Retrieval, load_test_set, ranked
from toolfinch_training.torch_encoder import Tokens


def measure_reranker(
    encoder: Path,
    reranker: Path,
    data: Path,
    names: Sequence[str],
    *,
    queries: int,
    depth: int,
    pair_tokens: int = MAX_TOKENS,
) -> dict[str, dict[str, Retrieval]]:
    """Metrics by set of the retrieved order and of the reranked one, `depth` candidates a query."""
    encode = onnx_encode(encoder)
    session = RerankerSession((reranker / MODEL_FILE).read_bytes())
    tokens = Tokens(MAX_TOKENS)
    pairs = Pairs(QUERY_TOKENS, pair_tokens)
    retrieved: dict[str, Retrieval] = {}
    reranked: dict[str, Retrieval] = {}
    for name in names:
        item = load_test_set(data / name, queries=queries, seed=SEED)
        scores = encode(item.queries) @ encode(item.tools).T
        candidates = np.argsort(-scores, axis=1, kind="stable")[:, :depth]
        used = sorted({int(tool) for row in candidates for tool in row})
        tool_ids = dict(zip(used, tokens.ids([item.tools[tool] for tool in used]), strict=True))
        tops = []
        for ids, row in zip(tokens.ids(item.queries), candidates, strict=True):
            logits = session.score([pairs.pair(ids, tool_ids[int(tool)]) for tool in row])
            tops.append(row[np.argsort(-logits, kind="stable")])
        retrieved[name] = ranked(list(candidates), item.gold)
        reranked[name] = ranked(tops, item.gold)
        print(
            f"{name}: retrieved {100 * retrieved[name].ndcg.mean():.2f}, "
            f"reranked {100 * reranked[name].ndcg.mean():.2f}",
            flush=True,
        )
    return {"retrieved": retrieved, "reranked": reranked}
