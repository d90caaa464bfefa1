"""Measure models on test sets, and choose the share of trained weights on validation data."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from toolfinch_training.examples import Examples
from toolfinch_training.model_folder import MAX_TOKENS, MODEL_FILE
from toolfinch_training.reference import EncoderSession
from toolfinch_training.test_sets import (
    MACRO,
    Retrieval,
    interval,
    load_test_set,
    mean_ndcg,
    retrieval,
)
from toolfinch_training.torch_encoder import Tokens, encode_sorted, load_bert
from toolfinch_training.weights import load_state, mixed, model_with

Encode = Callable[[Sequence[str]], NDArray[np.float32]]
SHARES = (0.0, 0.3, 0.5, 0.7, 0.85, 1.0)
SEED = 7


@dataclass(frozen=True)
class ShareScores:
    """Validation NDCG@10 in % by set, at one share of the trained weights."""

    share: float
    scores: dict[str, float]

    @property
    def macro(self) -> float:
        """The mean over sets."""
        return sum(self.scores.values()) / len(self.scores)


def torch_encode(state_file: Path | None, *, share: float = 1.0) -> Encode:
    """An encoder of texts from weights (None: the base model), float32 at 256 tokens."""
    model = load_bert()
    if state_file is not None:
        model = model_with(mixed(model.state_dict(), load_state(state_file), share))
    model.train(False)
    tokens = Tokens(MAX_TOKENS)

    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        with torch.inference_mode():
            result: NDArray[np.float32] = encode_sorted(
                model, tokens.ids(texts), bfloat16=False
            ).numpy()
        return result

    return encode


def onnx_encode(folder: Path, *, threads: int = 1) -> Encode:
    """An encoder of texts from a model folder, as it ships."""
    session = EncoderSession((folder / MODEL_FILE).read_bytes(), threads)
    tokens = Tokens(MAX_TOKENS)

    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        ids = tokens.ids(texts)
        order = sorted(range(len(ids)), key=lambda index: len(ids[index]))
        result: NDArray[np.float32] | None = None
        for start in range(0, len(order), 16):
            part = order[start : start + 16]
            vectors = session.batch([ids[index] for index in part])
            if result is None:
                result = np.empty((len(ids), vectors.shape[1]), np.float32)
            result[part] = vectors
        if result is None:
            raise ValueError("no text to encode")
        return result

    return encode


def choose_share(
    examples: Examples, state_file: Path, shares: Sequence[float] = SHARES
) -> list[ShareScores]:
    """Validation scores at each share; the best macro-average comes first."""
    base, trained = load_bert().state_dict(), load_state(state_file)
    tokens = Tokens(MAX_TOKENS)
    sets = [
        (item, tokens.ids(item.tools), tokens.ids(item.queries)) for item in examples.validation
    ]
    result = []
    for share in shares:
        model = model_with(mixed(base, trained, share))
        scores = {}
        with torch.inference_mode():
            for item, tools, queries in sets:
                scores[item.name] = 100 * mean_ndcg(
                    encode_sorted(model, tools, bfloat16=False).numpy(),
                    encode_sorted(model, queries, bfloat16=False).numpy(),
                    [set(gold) for gold in item.gold],
                )
        result.append(ShareScores(share, scores))
        print(f"share {share}: {scores}, macro {result[-1].macro:.2f}", flush=True)
    return sorted(result, key=lambda item: -item.macro)


def measure_sets(
    encode: Encode,
    data: Path,
    names: Sequence[str],
    *,
    queries: int,
    tool_vectors: Callable[[str], NDArray[np.float32] | None] | None = None,
) -> dict[str, Retrieval]:
    """Metrics by set, exact search with float32 vectors. `tool_vectors` may know a set's tools."""
    results = {}
    for name in names:
        started = time.monotonic()
        item = load_test_set(data / name, queries=queries, seed=SEED)
        known = tool_vectors(name) if tool_vectors else None
        tools = encode(item.tools) if known is None else known
        results[name] = retrieval(tools, encode(item.queries), item.gold)
        print(
            f"{name}: NDCG@10 {100 * results[name].ndcg.mean():.2f} "
            f"({len(item.queries)} queries, {time.monotonic() - started:.0f} s)",
            flush=True,
        )
    return results


def table(models: Mapping[str, Mapping[str, Retrieval]]) -> str:
    """NDCG@10 in % by set and model; the last column is the last model's gain with its interval."""
    titles = list(models)
    names = list(models[titles[0]])
    lines = [
        f"| set | {' | '.join(titles)} | gain (95 % interval) | Recall@10 | Complete@10 |",
        f"|---|{'---|' * (len(titles) + 3)}",
    ]
    for name in names:
        cells = [f"{100 * models[title][name].ndcg.mean():.1f}" for title in titles]
        first, last = models[titles[0]][name], models[titles[-1]][name]
        gain = 100 * (last.ndcg - first.ndcg)
        low, high = interval(gain)
        lines.append(
            f"| {name} | {' | '.join(cells)} | {gain.mean():+.1f} ({low:+.1f} to {high:+.1f}) "
            f"| {100 * last.recall.mean():.1f} | {100 * last.complete.mean():.1f} |"
        )
    inside = [name for name in names if name in MACRO]
    if inside:
        means = [
            100 * sum(float(models[title][name].ndcg.mean()) for name in inside) / len(inside)
            for title in titles
        ]
        lines.append(
            f"| mean of {len(inside)} | {' | '.join(f'{mean:.1f}' for mean in means)} "
            f"| {means[-1] - means[0]:+.1f} | | |"
        )
    return "\n".join(lines)


def summary(results: Mapping[str, Retrieval]) -> dict[str, Any]:
    """What `table` shows, as JSON."""
    return {
        name: {
            "queries": len(item.ndcg),
            "ndcg10": round(100 * float(item.ndcg.mean()), 2),
            "recall10": round(100 * float(item.recall.mean()), 2),
            "complete10": round(100 * float(item.complete.mean()), 2),
        }
        for name, item in results.items()
    }


def save_summary(results: Mapping[str, Retrieval], path: Path) -> None:
    """Write `summary`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(summary(results), indent=2) + "\n", "utf-8")
