"""Train the reranker: point-wise, then list-wise, over mined candidate lists (MagicSelector, 4.2).

First every pair alone (BCE, eq. 16), then whole lists (cross-entropy, eq. 18 and 19, target
uniform over the list's gold tools). A list holds the query's gold tools and wrong tools drawn from
the retriever's best `pool`. Between rounds (algorithm 1) the reranker itself scores the pools of
the queries to come, and its best wrong tools make their lists.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from toolfinch_training.cross_encoder import CrossEncoder, Pair, Pairs, score_pairs
from toolfinch_training.examples import Example, Examples, ValidationSet
from toolfinch_training.mining import mine
from toolfinch_training.test_sets import ranked
from toolfinch_training.torch_encoder import Tokens, encode_sorted, load_bert
from toolfinch_training.training_run import TrainingRun, since
from toolfinch_training.weights import load_state, mixed, model_with
from toolfinch_training.workers import Workers, run_workers

Encode = Callable[[list[Sequence[int]]], Tensor]

POINT_WISE = "point-wise"
LIST_WISE = "list-wise"


@dataclass(frozen=True)
class RerankerSettings:
    """How a reranker is trained. `minutes` ends the schedule if it comes before `steps`."""

    steps: int = 400
    minutes: float = 30.0
    lists: int = 12
    list_length: int = 8
    point_share: float = 0.3
    learning_rate: float = 3e-5
    head_rate: float = 1e-3
    warmup: float = 0.1
    weight_decay: float = 0.01
    query_tokens: int = 48
    pair_tokens: int = 112
    pool: int = 24
    rounds: int = 1
    mined_queries: int = 1500
    queries: int = 6000
    validation_queries: int = 60
    validation_depth: int = 20
    seed: int = 23
    workers: int = 2
    bfloat16: bool = True
    validate_every: int = 60
    checkpoint_minutes: float = 3.0
    share: float = 1.0
    sources: tuple[tuple[str, float], ...] = (
        ("synthetic", 0.6),
        ("metatool", 0.3),
        ("sealtools", 0.1),
    )


@dataclass
class _Query:
    ids: list[int]
    gold: tuple[int, ...]
    pool: list[int]


@dataclass
class _Validation:
    name: str
    tools: list[list[int]]
    queries: list[list[int]]
    gold: list[set[int]]
    candidates: list[list[int]]


def train_reranker(
    examples: Path, retriever: Path | None, out: Path, settings: RerankerSettings
) -> None:
    """Train, or go on from `out`'s checkpoint. `retriever`: weights to start and to mine from."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "settings.json").write_text(json.dumps(asdict(settings), indent=2) + "\n", "utf-8")
    run_workers(partial(_run, examples, retriever, out, settings), settings.workers)


def _run(
    examples: Path, retriever: Path | None, out: Path, settings: RerankerSettings, workers: Workers
) -> None:
    _Run(Examples.load(examples), retriever, out, settings, workers).run()


def point_loss(logits: Tensor, relevant: Tensor) -> Tensor:
    """Mean binary cross-entropy (eq. 16) over [lists, length]."""
    return functional.binary_cross_entropy_with_logits(logits, relevant)


def list_loss(logits: Tensor, relevant: Tensor) -> Tensor:
    """Mean over lists of -sum P* log P (eq. 19), P* uniform over the relevant tools."""
    target = relevant / relevant.sum(dim=1, keepdim=True)
    return -(target * functional.log_softmax(logits, dim=1)).sum(dim=1).mean()


class _Run(TrainingRun[CrossEncoder]):
    def __init__(
        self,
        examples: Examples,
        retriever: Path | None,
        out: Path,
        settings: RerankerSettings,
        workers: Workers,
    ) -> None:
        super().__init__(out, settings, workers, first_round=0)
        self._settings = settings
        torch.manual_seed(settings.seed)
        self._pairs = Pairs(settings.query_tokens, settings.pair_tokens)
        self._model = CrossEncoder()
        encoder = load_bert().state_dict()
        if retriever is not None:
            encoder = mixed(encoder, load_state(retriever), settings.share)
        self._model.start_from(encoder)
        for value in self._model.bert.embeddings.parameters():
            value.requires_grad_(False)
        self._trainable = [value for value in self._model.parameters() if value.requires_grad]
        body = [value for value in self._model.bert.parameters() if value.requires_grad]
        inside = {id(value) for value in body}
        head = [value for value in self._trainable if id(value) not in inside]
        self._optimizer = torch.optim.AdamW(
            [
                {"params": body, "lr": settings.learning_rate},
                {"params": head, "lr": settings.head_rate},
            ],
            weight_decay=settings.weight_decay,
        )
        self._pools: dict[int, list[int]] = {}
        self._resume()
        self._prepare(examples, encoder)
        self._model.train()

    def _prepare(self, examples: Examples, encoder: dict[str, Tensor]) -> None:
        """Token ids, and each query's pool: the retriever's best wrong tools."""
        settings = self._settings
        source = random.Random(settings.seed)
        chosen = _draw(examples.train, settings, source)
        tokens = Tokens(settings.pair_tokens)
        self._tools = tokens.ids(examples.tools)
        bert = model_with(encoder)
        started = time.monotonic()

        def encode(items: list[Sequence[int]]) -> Tensor:
            return encode_sorted(bert, items, bfloat16=settings.bfloat16)

        query_ids = tokens.ids([example.text for example in chosen])
        with torch.inference_mode():
            tools = self._workers.gather([ids[:64] for ids in self._tools], encode).numpy()
            queries = self._workers.gather(query_ids, encode).numpy()
        pools = mine(
            queries, tools, [item.gold for item in chosen], examples.names, count=settings.pool
        )
        self._queries = [
            _Query(ids, example.gold, pool)
            for ids, example, pool in zip(query_ids, chosen, pools, strict=True)
            if len(pool) >= settings.list_length
        ]
        self._validation = [
            self._validation_of(item, tokens, encode, source) for item in examples.validation
        ]
        self._log(event="pools", queries=len(self._queries), took=since(started))

    def _validation_of(
        self, item: ValidationSet, tokens: Tokens, encode: Encode, source: random.Random
    ) -> _Validation:
        count = min(self._settings.validation_queries, len(item.queries))
        sample = sorted(source.sample(range(len(item.queries)), count))
        tools = tokens.ids(item.tools)
        queries = tokens.ids([item.queries[index] for index in sample])
        with torch.inference_mode():
            scores = (
                self._workers.gather(queries, encode) @ self._workers.gather(tools, encode).T
            ).numpy()
        depth = self._settings.validation_depth
        order = np.argsort(-scores, axis=1, kind="stable")[:, :depth]
        return _Validation(
            item.name,
            tools,
            queries,
            [set(item.gold[index]) for index in sample],
            [[int(tool) for tool in row] for row in order],
        )

    def _train_step(self, progress: float) -> None:
        settings = self._settings
        rates = (settings.learning_rate, settings.head_rate)
        for group, rate in zip(self._optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * self._pace(progress)
        stage = POINT_WISE if progress < settings.point_share else LIST_WISE
        started = time.monotonic()
        own = self._lists()[self._workers.rank :: self._workers.count]
        pairs = [self._pair(query, tool) for query, tools in own for tool in tools]
        relevant = torch.tensor(
            [[float(tool in query.gold) for tool in tools] for query, tools in own]
        )
        logits = score_pairs(self._model, pairs, bfloat16=settings.bfloat16).view(relevant.shape)
        loss = point_loss(logits, relevant) if stage == POINT_WISE else list_loss(logits, relevant)
        # Every worker's mean counts by its share of the lists.
        self._descend(loss * len(own) / settings.lists)
        self._log(
            event="step",
            stage=stage,
            round=self._round,
            loss=round(float(loss.detach()), 5),
            seconds_step=since(started),
        )

    def _lists(self) -> list[tuple[_Query, list[int]]]:
        """The step's lists, a pure function of seed, step and round."""
        settings = self._settings
        source = random.Random(settings.seed * 1_000_003 + self._step)
        lists = []
        start = self._step * settings.lists
        for offset in range(settings.lists):
            index = (start + offset) % len(self._queries)
            query = self._queries[index]
            gold = list(query.gold)[: settings.list_length // 2]
            count = settings.list_length - len(gold)
            hard = self._pools.get(index)
            wrong = hard[:count] if hard else source.sample(query.pool, count)
            lists.append((query, [*gold, *wrong]))
        return lists

    def _pair(self, query: _Query, tool: int) -> Pair:
        return self._pairs.pair(query.ids, self._tools[tool])

    def _mine(self, planned: int) -> None:
        """Algorithm 1: the reranker orders the pools of the next queries."""
        started = time.monotonic()
        first = self._step * self._settings.lists
        indices = [
            (first + offset) % len(self._queries)
            for offset in range(min(self._settings.mined_queries, len(self._queries)))
        ]
        pairs = [
            self._pair(self._queries[index], tool)
            for index in indices
            for tool in self._queries[index].pool
        ]
        scores = self._score(pairs)
        offset = 0
        for index in indices:
            pool = self._queries[index].pool
            part = scores[offset : offset + len(pool)]
            offset += len(pool)
            self._pools[index] = [
                pool[place]
                for place in np.argsort(-part, kind="stable")[: self._settings.list_length]
            ]
        self._log(event="mined", round=planned, queries=len(indices), took=since(started))

    def _score(self, pairs: list[Pair]) -> NDArray[np.float32]:
        self._model.train(False)
        shares = self._workers.share([len(ids) for ids, _ in pairs])
        with torch.inference_mode():
            own = score_pairs(
                self._model,
                [pairs[index] for index in shares[self._workers.rank]],
                bfloat16=self._settings.bfloat16,
            )
        scores = torch.zeros(len(pairs))
        scores[torch.tensor(shares[self._workers.rank])] = own
        if self._workers.count > 1:
            torch.distributed.all_reduce(scores)
        self._model.train()
        result: NDArray[np.float32] = scores.numpy()
        return result

    def _scores(self) -> dict[str, Any]:
        """NDCG@10 of the reranked candidates; beside it, of the candidates as retrieved."""
        scores, before = {}, {}
        for item in self._validation:
            pairs = [
                self._pairs.pair(query, item.tools[tool])
                for query, candidates in zip(item.queries, item.candidates, strict=True)
                for tool in candidates
            ]
            depth = len(item.candidates[0])
            logits = self._score(pairs).reshape(-1, depth)
            tops = [
                [candidates[place] for place in np.argsort(-row, kind="stable")]
                for candidates, row in zip(item.candidates, logits, strict=True)
            ]
            scores[item.name] = round(100 * float(ranked(tops, item.gold).ndcg.mean()), 2)
            before[item.name] = round(
                100 * float(ranked(item.candidates, item.gold).ndcg.mean()), 2
            )
        return {"scores": scores, "retrieved": before}

    def _own_state(self) -> dict[str, Any]:
        return {"pools": self._pools}

    def _restore(self, saved: dict[str, Any]) -> None:
        self._pools = saved["pools"]


def _draw(
    examples: list[Example], settings: RerankerSettings, source: random.Random
) -> list[Example]:
    """Examples by source shares, shuffled."""
    drawn: list[Example] = []
    for name, share in settings.sources:
        members = [example for example in examples if example.source == name]
        drawn += source.sample(members, min(len(members), round(settings.queries * share)))
    if not drawn:
        raise ValueError(f"no example of {[name for name, _ in settings.sources]}")
    source.shuffle(drawn)
    return drawn
