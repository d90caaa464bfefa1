"""The float64 reference of the golden vectors, written from the mathematics.

Cosine; MagicSelector, algorithm 2; RATED's discounted diagonal LinUCB and fusion; availability.
Shares no code with any implementation.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Case = dict[str, Any]

SCORE, SIMILARITY = 1, 2


def f32(value: float) -> float:
    """Rounds to float32."""
    return float(np.float32(value))


def cosine(a: Float32, b: Float32) -> float:
    """Cosine of two float32 vectors in float64, each scaled by its largest component first."""
    x = a.astype(np.float64)
    y = b.astype(np.float64)
    x = x / np.max(np.abs(x))
    y = y / np.max(np.abs(y))
    value = float(np.dot(x, y) / (math.sqrt(float(np.dot(x, x))) * math.sqrt(float(np.dot(y, y)))))
    return min(1.0, max(-1.0, value))


def unit(x: Float32) -> Float64:
    """Normalises in float64."""
    y = x.astype(np.float64)
    return y / math.sqrt(float(np.dot(y, y)))


def largest_gap(values: list[float]) -> tuple[int, float]:
    """Gives the smallest 1-based i of the largest gap, and the gap; (0, 0) when there is none."""
    best, at = 0.0, 0
    for i in range(len(values) - 1):
        gap = values[i] - values[i + 1]
        if at == 0 or gap > best:
            best, at = gap, i + 1
    return at, best


def truncate(scores: Float32, rows: Float32, options: dict[str, int]) -> tuple[Case, list[float]]:
    """Algorithm 2: similarities rounded to float32, gaps in float64."""
    n = len(scores)
    similarities = [f32(cosine(rows[i], rows[i + 1])) for i in range(n - 1)]
    signals = options.get("signals", 0) or SCORE | SIMILARITY
    k_score, gap_score = largest_gap([float(s) for s in scores]) if signals & SCORE else (0, 0.0)
    k_sim, gap_sim = largest_gap(similarities) if signals & SIMILARITY else (0, 0.0)
    k, signal = max(k_score, k_sim), 0
    if k == 0:
        k = n
    else:
        signal = (SCORE if k_score == k else 0) | (SIMILARITY if k_sim == k else 0)
        k += options.get("after", 0)
    bounded = max(k, options.get("min_k", 0))
    if options.get("max_k", 0):
        bounded = min(bounded, options["max_k"])
    bounded = min(bounded, n)
    expected = {
        "k": bounded,
        "k_score": k_score,
        "k_similarity": k_sim,
        "signal": signal if bounded == k else 0,
        "gap_score": gap_score,
        "gap_similarity": gap_sim,
    }
    return expected, similarities


class Arm:
    """One tool with feedback, in float64."""

    def __init__(self, options: Case, prior: float) -> None:
        d = options["dimension"]
        self.prior = prior
        self.a: Float64 = np.full(d, options["lambda"], np.float64)
        start = prior / math.sqrt(d) if options["form"] == "literal" else 0.0
        self.b: Float64 = np.full(d, start, np.float64)
        self.evidence = 0.0
        self.reward_sum = 0.0
        self.updates = 0
        self.last: float | None = None


class Bandit:
    """Discounted diagonal LinUCB in the three forms, in float64."""

    def __init__(self, options: Case) -> None:
        self.o = options
        self.arms: dict[str, Arm] = {}

    def update(self, arm_id: str, x: Float32, prior: float, y: float) -> None:
        """Applies one outcome."""
        arm = self.arms.setdefault(arm_id, Arm(self.o, prior))
        gamma, v = self.o["gamma"], unit(x)
        if self.o["form"] == "literal":
            arm.a = gamma * arm.a + v**2
            arm.b = gamma * arm.b + y * v
        elif self.o["form"] == "calibrated":
            v = math.sqrt(len(x)) * v
            arm.a = gamma * arm.a + v**2 + (1 - gamma) * self.o["lambda"]
            arm.b = gamma * arm.b + (y - arm.prior) * v
        arm.evidence = gamma * arm.evidence + 1
        arm.reward_sum = gamma * arm.reward_sum + y
        arm.updates += 1
        arm.last = y

    def score(self, arm_id: str, x: Float32, prior: float, explore: bool) -> Case:
        """Mean and bonus of one arm."""
        arm = self.arms.get(arm_id) or Arm(self.o, prior)
        v, form = unit(x), self.o["form"]
        if form == "mean":
            total = sum(a.evidence for a in self.arms.values())
            weight = self.o["lambda"] + arm.evidence
            mean = (self.o["lambda"] * arm.prior + arm.reward_sum) / weight
            spread = math.log(1 + total) / weight
        elif form == "literal":
            mean, spread = float(np.sum(arm.b / arm.a * v)), float(np.sum(v**2 / arm.a))
        else:
            v = math.sqrt(len(x)) * v
            mean = arm.prior + float(np.mean(arm.b * v / arm.a))
            spread = float(np.mean(v**2 / arm.a))
        return {
            "mean": mean,
            "bonus": self.o["alpha"] * math.sqrt(spread) if explore else 0.0,
            "evidence": arm.evidence,
            "updates": arm.updates,
            "last_outcome": arm.last,
        }


class Availability:
    """One tool's availability."""

    def __init__(self, gamma: float, half_life: float, half_life_max: float) -> None:
        self.gamma = gamma
        self.half_life = half_life
        self.most = half_life_max
        self.level, self.time, self.failures = 1.0, 0.0, 0

    def at(self, now: float) -> float:
        """Relaxes towards 1; a clock that went backwards counts as no time."""
        if self.level >= 1:
            return 1.0
        h = min(self.most, self.half_life * 2.0 ** max(self.failures - 1, 0))
        return float(1 - (1 - self.level) * 2.0 ** (-max(0.0, now - self.time) / h))

    def observe(self, y: float, now: float) -> None:
        """Applies one outcome."""
        self.level = self.gamma * self.at(now) + (1 - self.gamma) * y
        self.time, self.failures = now, self.failures + 1 if y < 0.5 else 0


def fuse(weights: Case, columns: dict[str, Float32]) -> list[float]:
    """Fused scores; absent columns take their defaults."""
    w = {k: f32(weights.get(k, 0.0)) for k in ("semantic", "bandit", "prior", "outage")}
    if w["semantic"] == w["bandit"] == w["prior"] == 0:
        w |= {"semantic": f32(0.75), "bandit": f32(0.15), "prior": f32(0.10)}
    semantic = columns["semantic"].astype(np.float64)
    prior = columns.get("prior", np.full(len(semantic), 0.5, np.float32)).astype(np.float64)
    p = columns["p"].astype(np.float64) if "p" in columns else prior
    available = columns.get("availability", np.ones(len(semantic), np.float32)).astype(np.float64)
    if weights.get("clamp", 0):
        p = np.clip(p, 0.0, 1.0)
    fused = w["semantic"] * semantic + w["bandit"] * p + w["prior"] * prior
    return [float(v) for v in fused - w["outage"] * (1.0 - available)]
