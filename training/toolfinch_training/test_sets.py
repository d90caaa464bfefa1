"""Test sets: what is measured, with which text, and the metrics with their intervals."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from toolfinch_training.index_text import index_text, tool_of
from toolfinch_training.labelled_files import labelled_queries, rows

# The sets of the macro-average, and two that stand beside it.
MACRO = (
    "livemcpbench_xl",
    "livemcpbench",
    "toollens",
    "toolbench_g1",
    "metatool",
    "bfcl",
    "toolalpaca",
    "apibank",
)
BESIDE = ("sealtools", "mcptoolbenchpp")
DEPTH = 10
_RESAMPLES = 1000

Scores = NDArray[np.float64]


@dataclass(frozen=True)
class TestSet:
    """Tools by their index text, test queries, and the positions of each query's tools."""

    __test__ = False

    name: str
    tool_ids: list[str]
    tools: list[str]
    queries: list[str]
    gold: list[set[int]]


@dataclass(frozen=True)
class Retrieval:
    """Per-query scores [queries] of one model on one set, 0 to 1."""

    ndcg: Scores
    recall: Scores
    complete: Scores


def load_test_set(folder: Path, *, queries: int, seed: int) -> TestSet:
    """A set with a seeded sample of at most `queries` test queries.

    Metatool's queries for two tools are left out: its measure here is the one for single tools.
    """
    tools = [tool_of(row) for row in rows(folder / "tools.jsonl")]
    position = {tool.id: index for index, tool in enumerate(tools)}
    labelled = [
        (row, gold)
        for row, gold in labelled_queries(folder, position, "test")
        if not (folder.name == "metatool" and row.get("kind") == "multi")
    ]
    sample = random.Random(seed).sample(labelled, min(queries, len(labelled)))
    return TestSet(
        name=folder.name,
        tool_ids=[tool.id for tool in tools],
        tools=[index_text(tool) for tool in tools],
        queries=[row["text"] for row, _ in sample],
        gold=[{position[tool] for tool in gold} for _, gold in sample],
    )


def retrieval(
    tools: NDArray[np.float32], queries: NDArray[np.float32], gold: Sequence[set[int]]
) -> Retrieval:
    """Exact search by inner product, ties to the lower position; metrics at 10."""
    tops: list[NDArray[np.int64]] = []
    for start in range(0, len(queries), 256):
        scores = queries[start : start + 256] @ tools.T
        tops.extend(np.argsort(-scores, axis=1, kind="stable")[:, :DEPTH])
    return ranked(tops, gold)


def mean_ndcg(
    tools: NDArray[np.float32], queries: NDArray[np.float32], gold: Sequence[set[int]]
) -> float:
    """Mean NDCG@10 of an exact search."""
    return float(retrieval(tools, queries, gold).ndcg.mean())


def ranked(
    tops: Sequence[Sequence[int] | NDArray[np.int64]], gold: Sequence[set[int]]
) -> Retrieval:
    """Metrics at 10 of ranked positions.

    NDCG with binary gains (Jarvelin and Kekalainen 2002), Recall, Completeness.
    """
    gains = 1.0 / np.log2(np.arange(2, DEPTH + 2))
    ndcg, recall, complete = [], [], []
    for top, wanted in zip(tops, gold, strict=True):
        found = np.array([int(tool) in wanted for tool in top[:DEPTH]])
        ndcg.append(gains[: len(found)][found].sum() / gains[: len(wanted)].sum())
        recall.append(found.sum() / len(wanted))
        complete.append(float(found.sum() == len(wanted)))
    return Retrieval(np.array(ndcg), np.array(recall), np.array(complete))


def interval(values: Scores, *, seed: int = 5) -> tuple[float, float]:
    """95 % bootstrap interval (percentile) of the mean over queries."""
    source = np.random.default_rng(seed)
    means = [values[source.integers(0, len(values), len(values))].mean() for _ in range(_RESAMPLES)]
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)
