"""What a quantised encoder loses against float32, and how fast it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from toolfinch_training.dataset import RetrievalSet
from toolfinch_training.reference import EncoderSession, Vectors
from toolfinch_training.test_sets import mean_ndcg

LENGTHS = (16, 64, 128)
_RUNS = 60
_BATCH = 8

Ids = Sequence[Sequence[int]]
TokenIds = Callable[[str], list[int]]


@dataclass(frozen=True)
class EncodedSet:
    """A retrieval set as token ids."""

    name: str
    tools: Ids
    queries: Ids
    relevant: Sequence[set[int]]


@dataclass(frozen=True)
class Measurement:
    """One row of the card's table."""

    name: str
    megabytes: float
    mean_cosine: float
    least_cosine: float
    ndcg: dict[str, float]
    batch_difference: float


def measure(
    name: str, model: bytes, texts: Ids, reference: Vectors, sets: Sequence[EncodedSet]
) -> Measurement:
    """Measure a model against `reference`, the float32 vectors of `texts`."""
    session = EncoderSession(model)
    vectors = session.encode(texts)
    cosines = (vectors.astype(np.float64) * reference).sum(axis=1)
    return Measurement(
        name=name,
        megabytes=len(model) / 1e6,
        mean_cosine=float(cosines.mean()),
        least_cosine=float(cosines.min()),
        ndcg={
            item.name: mean_ndcg(
                session.encode(item.tools), session.encode(item.queries), item.relevant
            )
            for item in sets
        },
        batch_difference=batch_difference(session, texts[:64]),
    )


def encode_set(item: RetrievalSet, tokenize: TokenIds) -> EncodedSet:
    """The token ids of a retrieval set."""
    return EncodedSet(
        name=item.name,
        tools=[tokenize(text) for text in item.tools],
        queries=[tokenize(text) for text in item.queries],
        relevant=item.relevant,
    )


def batch_difference(session: EncoderSession, texts: Ids) -> float:
    """Largest difference between texts encoded alone and in padded batches of 8."""
    alone = session.encode(texts)
    batched = np.concatenate(
        [session.batch(texts[start : start + _BATCH]) for start in range(0, len(texts), _BATCH)]
    )
    return float(np.abs(alone - batched).max())


def latencies(models: Mapping[str, bytes]) -> dict[str, dict[int, float]]:
    """Least milliseconds a text on one thread, by model and number of tokens.

    The models take turns, so that whatever else the machine does weighs on all alike; the least of
    many runs is the one that it disturbed least.
    """
    sessions = {name: EncoderSession(model) for name, model in models.items()}
    result: dict[str, dict[int, float]] = {name: {} for name in models}
    for length in LENGTHS:
        ids = [list(range(2000, 2000 + length))]
        times: dict[str, list[float]] = {name: [] for name in models}
        for _ in range(_RUNS):
            for name, session in sessions.items():
                start = time.perf_counter()
                session.batch(ids)
                times[name].append(time.perf_counter() - start)
        for name, values in times.items():
            result[name][length] = min(values) * 1e3
    return result
