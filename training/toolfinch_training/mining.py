"""Hard negatives by self-distillation (MagicSelector, arXiv seed paper, algorithm 1, eq. 21-23).

The current model ranks the pool for every training query; the best tools that are not gold are the
hard negatives of the next round. Tools that say the same as a gold tool (equal name in words, or a
cosine to it above `SAME`) are not called wrong: catalogues list one tool many times.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

SAME = 0.92


def mine(
    queries: NDArray[np.float32],
    tools: NDArray[np.float32],
    gold: Sequence[Sequence[int]],
    names: Sequence[str],
    *,
    count: int,
    same: float = SAME,
) -> list[list[int]]:
    """For each query the `count` best tools that are wrong, best first.

    queries [Q, D], tools [T, D]: unit vectors; gold: positions of each query's tools.
    """
    result: list[list[int]] = []
    spare = min(len(tools), count * 4 + 8)
    for start in range(0, len(queries), 512):
        scores = queries[start : start + 512] @ tools.T
        best = np.argpartition(-scores, spare - 1, axis=1)[:, :spare]
        for row, (candidates, score) in enumerate(zip(best, scores, strict=True)):
            ordered = candidates[np.argsort(-score[candidates], kind="stable")]
            wanted = gold[start + row]
            wrong = [
                int(tool) for tool in ordered if not is_same(int(tool), wanted, tools, names, same)
            ]
            result.append(wrong[:count])
    return result


def is_same(
    tool: int,
    gold: Sequence[int],
    tools: NDArray[np.float32],
    names: Sequence[str],
    same: float,
) -> bool:
    """True where a tool is gold or says the same as a gold tool."""
    return (
        tool in gold
        or any(names[tool] == names[item] for item in gold)
        or bool((tools[list(gold)] @ tools[tool] > same).any())
    )
