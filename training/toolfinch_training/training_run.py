"""What the training runs of retriever and reranker share: schedule, steps, log, checkpoints."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import torch
from torch import Tensor, nn

from toolfinch_training.workers import Workers

CHECKPOINT = "checkpoint.pt"
BEST = "best.pt"
LOG = "log.jsonl"


class Schedule(Protocol):
    """When a run ends, warms up, mines, validates and saves."""

    @property
    def steps(self) -> int:
        """The last step, unless `minutes` are over before."""
        ...

    @property
    def minutes(self) -> float:
        """Of training, earlier parts of a resumed run included."""
        ...

    @property
    def warmup(self) -> float:
        """Share of the schedule in which the learning rate rises."""
        ...

    @property
    def rounds(self) -> int:
        """How often hard negatives are mined (algorithm 1), evenly spread."""
        ...

    @property
    def validate_every(self) -> int:
        """Steps."""
        ...

    @property
    def checkpoint_minutes(self) -> float:
        """Between two checkpoints."""
        ...


Model = TypeVar("Model", bound=nn.Module)


class TrainingRun(ABC, Generic[Model]):
    """One run, new or resumed. A subclass sets model and optimiser, then calls `_resume`."""

    _model: Model
    _optimizer: torch.optim.Optimizer
    _trainable: list[nn.Parameter]

    def __init__(
        self, out: Path, schedule: Schedule, workers: Workers, *, first_round: int
    ) -> None:
        self._out = out
        self._schedule = schedule
        self._workers = workers
        self._step = 0
        self._seconds = 0.0
        self._round = first_round
        self._best = -1.0

    def run(self) -> None:
        """Train to the end of the schedule."""
        schedule = self._schedule
        started = time.monotonic() - self._seconds
        if self._step == 0:
            self._validate()
        saved = time.monotonic()
        while True:
            self._seconds = self._workers.agree(time.monotonic() - started)
            progress = max(self._step / schedule.steps, self._seconds / (schedule.minutes * 60))
            if progress >= 1:
                break
            planned = min(schedule.rounds - 1, int(progress * schedule.rounds))
            if planned > self._round:
                self._mine(planned)
                self._round = planned
            self._train_step(progress)
            self._step += 1
            if self._step % schedule.validate_every == 0:
                self._validate()
            if time.monotonic() - saved > schedule.checkpoint_minutes * 60:
                self._save()
                saved = time.monotonic()
        self._validate()
        self._save()

    @abstractmethod
    def _train_step(self, progress: float) -> None: ...

    @abstractmethod
    def _mine(self, planned: int) -> None: ...

    @abstractmethod
    def _scores(self) -> dict[str, Any]:
        """Log values of a validation: `scores` by set, 0 to 100, and what goes beside them."""

    @abstractmethod
    def _own_state(self) -> dict[str, Any]: ...

    @abstractmethod
    def _restore(self, saved: dict[str, Any]) -> None: ...

    def _pace(self, progress: float) -> float:
        """Share of the full learning rate: linear warm-up, then linear decay, never below 1 %."""
        warmup = self._schedule.warmup
        warm = min(1.0, progress / warmup) if warmup > 0 else 1.0
        return max(0.01, min(warm, (1 - progress) / (1 - warmup)))

    def _descend(self, loss: Tensor) -> None:
        """One step of the optimiser; every worker's gradients count."""
        loss.backward()  # type: ignore[no-untyped-call]
        self._workers.sum_gradients(self._trainable)
        torch.nn.utils.clip_grad_norm_(self._trainable, 1.0)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)

    def _validate(self) -> None:
        started = time.monotonic()
        self._model.train(False)
        values = self._scores()
        self._model.train()
        macro = sum(values["scores"].values()) / len(values["scores"])
        self._log(event="validation", **values, macro=round(macro, 2), took=since(started))
        if macro > self._best:
            self._best = macro
            if self._workers.rank == 0:
                _save_whole(self._model.state_dict(), self._out / BEST)

    def _log(self, **values: object) -> None:
        if self._workers.rank == 0:
            line = {"step": self._step, "seconds": round(self._seconds, 1), **values}
            with (self._out / LOG).open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")

    def _save(self) -> None:
        if self._workers.rank == 0:
            state = {
                "model": self._model.state_dict(),
                "optimizer": self._optimizer.state_dict(),
                "step": self._step,
                "seconds": self._seconds,
                "round": self._round,
                "best": self._best,
            }
            _save_whole(state | self._own_state(), self._out / CHECKPOINT)

    def _resume(self) -> None:
        path = self._out / CHECKPOINT
        if not path.exists():
            return
        saved = torch.load(path, weights_only=True)
        self._model.load_state_dict(saved["model"])
        self._optimizer.load_state_dict(saved["optimizer"])
        self._step, self._seconds = saved["step"], saved["seconds"]
        self._round, self._best = saved["round"], saved["best"]
        self._restore(saved)


def since(started: float) -> float:
    """Seconds since a time of `time.monotonic`."""
    return round(time.monotonic() - started, 2)


def _save_whole(value: object, path: Path) -> None:
    """Write beside the old file, then take its place: a stopped run leaves a whole file."""
    temporary = path.with_suffix(".partial")
    torch.save(value, temporary)
    temporary.replace(path)
