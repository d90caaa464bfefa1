"""Python's exact searches, driven by bench/ line by line so that they take turns with the others.

Reads one JSON object a line and answers with one. The threads are set by the environment and the
affinity the parent gives this process.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

K = 10
Floats = npt.NDArray[np.float32]
# Rows and scores of the first so many queries: arrays or tensors.
Found = tuple[npt.ArrayLike, npt.ArrayLike]
Search = Callable[[int], Found]


def numpy_search(matrix: Floats, queries: Floats, threads: int) -> Search:
    """Matrix product, then argpartition."""

    def search(asked: int) -> Found:
        scores = queries[:asked] @ matrix.T
        rows = np.argpartition(scores, -K, axis=1)[:, -K:]
        best = np.take_along_axis(scores, rows, axis=1)
        order = np.argsort(-best, axis=1)
        return np.take_along_axis(rows, order, axis=1), np.take_along_axis(best, order, axis=1)

    return search


def faiss_search(matrix: Floats, queries: Floats, threads: int) -> Search:
    """IndexFlatIP, with matrix products from few queries on."""
    import faiss

    faiss.omp_set_num_threads(threads)
    # From this many queries on it is a matrix product; 20 without being told.
    faiss.cvar.distance_compute_blas_threshold = 4
    index = faiss.IndexFlatIP(matrix.shape[1])
    index.add(matrix)

    def search(asked: int) -> Found:
        scores, rows = index.search(queries[:asked], K)
        return rows, scores

    return search


def torch_search(matrix: Floats, queries: Floats, threads: int, half: bool) -> Search:
    """Matrix product and topk, in float32 or bf16."""
    import torch

    torch.set_num_threads(threads)
    kind = torch.bfloat16 if half else torch.float32
    columns = torch.from_numpy(matrix).to(kind).t()
    rows = torch.from_numpy(queries).to(kind)

    def search(asked: int) -> Found:
        with torch.inference_mode():
            scores, found = torch.topk(torch.mm(rows[:asked], columns), K)
        return found, scores.float()

    return search


MAKERS: dict[str, Callable[[Floats, Floats, int], Search]] = {
    "numpy": numpy_search,
    "faiss IndexFlatIP": faiss_search,
    "torch f32": lambda m, q, t: torch_search(m, q, t, False),
    "torch bf16": lambda m, q, t: torch_search(m, q, t, True),
    "torch bf16 without AMX": lambda m, q, t: torch_search(m, q, t, True),
}


class Hnsw:
    """faiss HNSW over inner products."""

    def __init__(self, request: dict[str, Any]) -> None:
        import faiss

        faiss.omp_set_num_threads(request["threads"])
        matrix, self.queries = read(request)
        self.index = faiss.IndexHNSWFlat(
            request["dimension"], request["connectivity"], faiss.METRIC_INNER_PRODUCT
        )
        self.index.hnsw.efConstruction = request["expansionAdd"]
        start = time.perf_counter()
        self.index.add(matrix)
        self.adds_per_second = len(matrix) / (time.perf_counter() - start)

    def search(self, ef: int) -> Found:
        """Search all queries, keeping ef candidates."""
        self.index.hnsw.efSearch = ef
        scores, rows = self.index.search(self.queries, K)
        return rows, scores


def repeat(call: Callable[[], Any], times: int) -> float:
    """Seconds of so many calls, after one untimed where there are several."""
    if times > 1:
        call()
    start = time.perf_counter()
    for _ in range(times):
        call()
    return time.perf_counter() - start


def listed(rows: npt.ArrayLike, scores: npt.ArrayLike) -> dict[str, Any]:
    """Return rows and scores as JSON takes them."""
    return {
        "rows": np.asarray(rows).ravel().tolist(),
        "scores": np.asarray(scores, dtype=np.float64).ravel().tolist(),
    }


def read(request: dict[str, Any]) -> tuple[Floats, Floats]:
    """Read the matrix and the queries from their files."""
    dimension = request["dimension"]
    matrix = np.fromfile(request["matrix"], dtype=np.float32).reshape(-1, dimension)
    queries = np.fromfile(request["queries"], dtype=np.float32).reshape(-1, dimension)
    return matrix, queries


class Server:
    """Keeps what was loaded between requests."""

    def __init__(self) -> None:
        self.searches: dict[str, Search] = {}
        self.hnsw: Hnsw | None = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Do what one request asks."""
        match request["do"]:
            case "load":
                matrix, queries = read(request)
                threads = request["threads"]
                self.searches = {
                    name: MAKERS[name](matrix, queries, threads) for name in request["peers"]
                }
                return {}
            case "time":
                search = self.searches[request["peer"]]
                return {"seconds": repeat(lambda: search(request["asked"]), request["times"])}
            case "found":
                return listed(*self.searches[request["peer"]](request["asked"]))
            case "hnsw":
                self.hnsw = Hnsw(request)
                return {"addsPerSecond": self.hnsw.adds_per_second}
        if self.hnsw is None:
            raise ValueError("there is no graph; ask for hnsw first")
        graph, ef = self.hnsw, request["ef"]
        if request["do"] == "hnswTime":
            return {"seconds": repeat(lambda: graph.search(ef), request["times"])}
        return listed(*graph.search(ef))


def main() -> None:
    """Answer until the input ends."""
    server = Server()
    for line in sys.stdin:
        try:
            answer = server.answer(json.loads(line))
        except Exception as error:  # whatever a library throws, the parent is told
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
