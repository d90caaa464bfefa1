"""Train the retriever: InfoNCE over in-batch and mined negatives (MagicSelector, eq. 13).

python -m toolfinch_training train-retriever --examples FILE --out FOLDER --minutes 45

Workers encode a batch together (`workers`); each has the loss of the whole batch, and its gradient
with respect to its own vectors, summed over workers, is that of the whole batch.
"""

from __future__ import annotations

import json
import random
import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import BertModel

from toolfinch_training.examples import Examples, ValidationSet
from toolfinch_training.mining import SAME, mine
from toolfinch_training.test_sets import mean_ndcg
from toolfinch_training.torch_encoder import Tokens, encode_sorted, load_bert
from toolfinch_training.training_run import TrainingRun, since
from toolfinch_training.workers import Workers, run_workers


@dataclass(frozen=True)
class RetrieverSettings:
    """How a retriever is trained. `minutes` ends the schedule if it comes before `steps`."""

    steps: int = 400
    minutes: float = 60.0
    batch: int = 96
    learning_rate: float = 2e-5
    warmup: float = 0.1
    weight_decay: float = 0.01
    temperature: float = 0.05
    query_tokens: int = 64
    tool_tokens: int = 80
    negatives: int = 8
    rounds: int = 1
    seed: int = 17
    workers: int = 2
    bfloat16: bool = True
    validate_every: int = 40
    checkpoint_minutes: float = 3.0
    frozen_layers: int = 0
    layers: int | None = None
    shares: tuple[tuple[str, float], ...] = (
        ("synthetic", 0.62),
        ("metatool", 0.30),
        ("sealtools", 0.08),
    )


@dataclass
class _Texts:
    """Token ids of everything that is encoded."""

    tools: list[list[int]]
    queries: list[list[int]]


def train_retriever(examples: Path, out: Path, settings: RetrieverSettings) -> None:
    """Train, or go on from `out`'s checkpoint; writes log, checkpoint and best weights."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "settings.json").write_text(json.dumps(asdict(settings), indent=2) + "\n", "utf-8")
    run_workers(partial(_run, examples, out, settings), settings.workers)


def _run(examples: Path, out: Path, settings: RetrieverSettings, workers: Workers) -> None:
    _Run(Examples.load(examples), out, settings, workers).run()


def info_nce(
    queries: Tensor, tools: Tensor, positive: Tensor, excluded: Tensor, temperature: float
) -> Tensor:
    """Mean of -log softmax(q . t / temperature) at the positive tool (eq. 13).

    queries [B, D], tools [T, D]: unit vectors; positive [B]: positions in tools; excluded [B, T]:
    True where a tool is neither the positive nor a negative of the query.
    """
    logits = (queries @ tools.T / temperature).masked_fill(excluded, float("-inf"))
    return torch.nn.functional.cross_entropy(logits, positive)


class Sampler:
    """Draws batches by source shares; a pure function of seed and step."""

    def __init__(self, examples: Examples, settings: RetrieverSettings) -> None:
        self._settings = settings
        self._by_source: dict[str, list[int]] = {}
        for index, example in enumerate(examples.train):
            self._by_source.setdefault(example.source, []).append(index)
        self._shares = [
            (name, share) for name, share in settings.shares if self._by_source.get(name)
        ]
        if not self._shares:
            raise ValueError(f"no example of {[name for name, _ in settings.shares]}")

    def batch(self, step: int) -> list[int]:
        """The examples of a step: walks each source in shuffled order, epoch after epoch."""
        total = sum(share for _, share in self._shares)
        chosen: list[int] = []
        for place, (name, share) in enumerate(self._shares):
            last = place == len(self._shares) - 1
            count = (
                self._settings.batch - len(chosen)
                if last
                else round(self._settings.batch * share / total)
            )
            chosen += self._slice(name, step * count, count)
        return chosen

    def _slice(self, name: str, start: int, count: int) -> list[int]:
        members = self._by_source[name]
        taken: list[int] = []
        while len(taken) < count:
            epoch, offset = divmod(start + len(taken), len(members))
            order = random.Random(f"{self._settings.seed} {name} {epoch}").sample(
                members, len(members)
            )
            taken += order[offset : offset + count - len(taken)]
        return taken


class _Run(TrainingRun[BertModel]):
    def __init__(
        self, examples: Examples, out: Path, settings: RetrieverSettings, workers: Workers
    ) -> None:
        super().__init__(out, settings, workers, first_round=-1)
        self._settings = settings
        self._examples = examples
        queries = Tokens(settings.query_tokens)
        tools = Tokens(settings.tool_tokens)
        self._texts = _Texts(
            tools=tools.ids(self._examples.tools),
            queries=queries.ids([example.text for example in self._examples.train]),
        )
        self._validation = [
            (item, _Texts(tools.ids(item.tools), queries.ids(item.queries)))
            for item in self._examples.validation
        ]
        torch.manual_seed(settings.seed)
        self._model = load_bert(layers=settings.layers)
        self._freeze()
        self._model.train()
        self._trainable = [value for value in self._model.parameters() if value.requires_grad]
        self._optimizer = torch.optim.AdamW(
            self._trainable, lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
        self._sampler = Sampler(self._examples, settings)
        self._gold = [set(example.gold) for example in self._examples.train]
        self._negatives: list[list[int]] = []
        self._tool_vectors: NDArray[np.float32] = np.zeros((0, 0), np.float32)
        self._resume()

    def _freeze(self) -> None:
        """The embeddings keep what they know of words that training data does not show."""
        for value in self._model.embeddings.parameters():
            value.requires_grad_(False)
        for layer in self._model.encoder.layer[: self._settings.frozen_layers]:
            for value in layer.parameters():
                value.requires_grad_(False)

    def _train_step(self, progress: float) -> None:
        settings = self._settings
        rate = settings.learning_rate * self._pace(progress)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        source = random.Random(settings.seed * 1_000_003 + self._step)
        chosen = self._sampler.batch(self._step)
        positives = [source.choice(self._examples.train[index].gold) for index in chosen]
        mined = [
            source.choice(self._negatives[index]) for index in chosen if self._negatives[index]
        ]
        tools = list(dict.fromkeys((*positives, *mined)))
        excluded = self._excluded(chosen, positives, tools)
        place = {tool: position for position, tool in enumerate(tools)}
        started = time.monotonic()
        query_vectors = self._gathered([self._texts.queries[index] for index in chosen])
        tool_vectors = self._gathered([self._texts.tools[tool] for tool in tools])
        loss = info_nce(
            query_vectors,
            tool_vectors,
            torch.tensor([place[tool] for tool in positives]),
            excluded,
            settings.temperature,
        )
        self._descend(loss)
        self._log(
            event="step",
            loss=round(float(loss.detach()), 5),
            rate=rate,
            round=self._round,
            tools=len(tools),
            seconds_step=since(started),
        )

    def _excluded(self, chosen: list[int], positives: list[int], tools: list[int]) -> Tensor:
        """Other gold tools, and tools that say the same as the positive, are no negatives."""
        names = self._examples.names
        vectors = self._tool_vectors
        near = vectors[positives] @ vectors[tools].T > SAME
        mask = torch.from_numpy(near)
        for row, (index, positive) in enumerate(zip(chosen, positives, strict=True)):
            gold = self._gold[index]
            for column, tool in enumerate(tools):
                if tool in gold or names[tool] == names[positive]:
                    mask[row, column] = True
            mask[row, tools.index(positive)] = False
        return mask

    def _gathered(self, ids: list[list[int]]) -> Tensor:
        """Vectors of all texts; the gradient flows through this worker's share only."""
        bfloat16 = self._settings.bfloat16
        return self._workers.gather(
            ids, lambda items: encode_sorted(self._model, items, bfloat16=bfloat16)
        )

    def _encode_all(self, ids: list[list[int]]) -> NDArray[np.float32]:
        with torch.inference_mode():
            result: NDArray[np.float32] = self._gathered(ids).numpy()
        return result

    def _mine(self, planned: int) -> None:
        """Algorithm 1, lines 5 to 15, with the model as it is now."""
        started = time.monotonic()
        self._model.train(False)
        self._tool_vectors = self._encode_all(self._texts.tools)
        queries = self._encode_all(self._texts.queries)
        self._model.train()
        self._negatives = mine(
            queries,
            self._tool_vectors,
            [example.gold for example in self._examples.train],
            self._examples.names,
            count=self._settings.negatives,
        )
        self._log(event="mined", round=planned, took=since(started))

    def _scores(self) -> dict[str, Any]:
        scores = {
            item.name: round(100 * self._ndcg(item, texts), 2) for item, texts in self._validation
        }
        return {"scores": scores}

    def _ndcg(self, item: ValidationSet, texts: _Texts) -> float:
        return mean_ndcg(
            self._encode_all(texts.tools),
            self._encode_all(texts.queries),
            [set(gold) for gold in item.gold],
        )

    def _own_state(self) -> dict[str, Any]:
        return {
            "negatives": self._negatives,
            "tool_vectors": torch.from_numpy(self._tool_vectors),
        }

    def _restore(self, saved: dict[str, Any]) -> None:
        self._negatives = saved["negatives"]
        self._tool_vectors = saved["tool_vectors"].numpy()
