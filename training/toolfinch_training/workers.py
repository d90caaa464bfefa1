"""Worker processes that share a batch: each encodes its part, all take the same step.

Workers of one thread wait for each other once a step; threads of one worker wait at every
operation, which on a machine that does other work costs half of its speed.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from typing import Protocol

import torch
import torch.distributed as dist
from torch import Tensor
from torch.multiprocessing.spawn import spawn


class Task(Protocol):
    """What a worker runs; must be picklable."""

    def __call__(self, workers: Workers) -> None:
        """Run to the end."""
        ...


class Workers:
    """This worker's place among all of them, and what they do together."""

    def __init__(self, rank: int, count: int) -> None:
        self.rank = rank
        self.count = count

    def share(self, sizes: Sequence[int]) -> list[list[int]]:
        """Positions for each worker: the longest first, dealt in turn."""
        order = sorted(range(len(sizes)), key=lambda index: -sizes[index])
        return [order[rank :: self.count] for rank in range(self.count)]

    def gather(
        self, items: Sequence[Sequence[int]], encode: Callable[[list[Sequence[int]]], Tensor]
    ) -> Tensor:
        """encode(items) [items, columns], each worker computing its share.

        The gradient flows through this worker's share only: summed over workers it is the whole.
        """
        if self.count == 1:
            return encode(list(items))
        shares = self.share([len(item) for item in items])
        own = encode([items[index] for index in shares[self.rank]])
        longest = max(len(share) for share in shares)
        sent = torch.zeros((longest, own.shape[1]))
        sent[: len(own)] = own.detach()
        received = [torch.empty_like(sent) for _ in shares]
        dist.all_gather(received, sent)
        parts = [
            own if rank == self.rank else received[rank][: len(share)]
            for rank, share in enumerate(shares)
        ]
        inverse = torch.empty(len(items), dtype=torch.long)
        inverse[torch.tensor([index for share in shares for index in share])] = torch.arange(
            len(items)
        )
        return torch.cat(parts)[inverse]

    def sum_gradients(self, parameters: Sequence[Tensor]) -> None:
        """Replace every gradient by its sum over workers."""
        if self.count == 1:
            return
        flat = torch.cat(
            [
                (value.grad if value.grad is not None else torch.zeros_like(value)).reshape(-1)
                for value in parameters
            ]
        )
        dist.all_reduce(flat)
        offset = 0
        for value in parameters:
            size = value.numel()
            part = flat[offset : offset + size].view_as(value)
            if value.grad is None:
                value.grad = part.clone()
            else:
                value.grad.copy_(part)
            offset += size

    def agree(self, value: float) -> float:
        """The first worker's value, so that all stop at one step."""
        if self.count == 1:
            return value
        shared = torch.tensor([value], dtype=torch.float64)
        dist.broadcast(shared, 0)
        return float(shared)


def run_workers(task: Task, count: int) -> None:
    """Run a task in `count` processes of one thread, or here if `count` is 1."""
    if count == 1:
        task(Workers(0, 1))
        return
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    spawn(_start, args=(task, port, count), nprocs=count)  # type: ignore[no-untyped-call]


def _start(rank: int, task: Task, port: int, count: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=count
    )
    try:
        task(Workers(rank, count))
    finally:
        dist.destroy_process_group()
