"""Loss and validation curves of a training run, round by round, from its log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

_SMOOTHING = 10


def read_log(path: Path) -> list[dict[str, Any]]:
    """The lines of a log; of a step done twice (after a restart) the later one."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    latest = {(row["event"], row["step"], row.get("round")): row for row in rows}
    return sorted(latest.values(), key=lambda row: row["step"])


def plot_log(log: Path, out: Path) -> None:
    """Write a picture with the loss (each round a colour) above validation NDCG@10."""
    rows = read_log(log)
    steps = [row for row in rows if row["event"] == "step"]
    validations = [row for row in rows if row["event"] == "validation"]
    figure = Figure(figsize=(8, 6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    kinds = sorted({(row["round"], row.get("stage", "InfoNCE")) for row in steps})
    for number, stage in kinds:
        part = [
            row for row in steps if row["round"] == number and row.get("stage", "InfoNCE") == stage
        ]
        losses = np.array([row["loss"] for row in part])
        window = min(_SMOOTHING, len(losses))
        smooth = np.convolve(losses, np.ones(window) / window, "valid")
        above.plot(
            [row["step"] for row in part][window - 1 :], smooth, label=f"round {number}, {stage}"
        )
    above.set_ylabel(f"loss, mean of {_SMOOTHING} steps")
    if kinds:
        above.legend()
    for name in validations[0]["scores"] if validations else ():
        below.plot(
            [row["step"] for row in validations],
            [row["scores"][name] for row in validations],
            marker="o",
            label=name,
        )
    if validations:
        below.legend()
    below.set_xlabel("step")
    below.set_ylabel("validation NDCG@10, %")
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out)
