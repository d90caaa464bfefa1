"""Writes the golden vectors: inputs and outputs that every implementation is tested against.

    python3 test/golden/generate.py [--check]

`--check` compares with the files that are there instead of writing them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from reference import (
    SCORE,
    SIMILARITY,
    Availability,
    Bandit,
    Case,
    Float32,
    cosine,
    f32,
    fuse,
    truncate,
)

# No random case may hang on a rounding: the best two gaps (or scores) differ by at least this.
MARGIN = 1e-5


def decimals(values: Iterable[Any]) -> list[float]:
    """Gives float32 values as their shortest decimals, and proves that these are exact."""
    out = []
    for value in values:
        short = float(str(np.float32(value)))
        if np.float32(short) != np.float32(value):
            raise AssertionError(f"{value!r} has no exact short decimal")
        out.append(short)
    return out


def number(value: float) -> float:
    """Gives one float32 value as its shortest decimal."""
    return decimals([value])[0]


def error_cases(dimension: int = 3) -> list[tuple[str, list[float | str], str]]:
    """Vectors that must be refused, with their codes. JSON has no NaN: such numbers are strings."""
    good: list[float | str] = [1.0] * dimension
    return [
        ("nan", ["NaN", *good[1:]], "FINCH_NOT_FINITE"),
        ("infinity", [*good[:-1], "Infinity"], "FINCH_NOT_FINITE"),
        ("minus infinity", ["-Infinity", *good[1:]], "FINCH_NOT_FINITE"),
        ("zero", [0.0] * dimension, "FINCH_ZERO_VECTOR"),
        ("minus zero", [-0.0] * dimension, "FINCH_ZERO_VECTOR"),
    ]


# --- cosine and search ---------------------------------------------------------------------------


def cosine_file(rng: np.random.Generator) -> Case:
    """Builds cosine.json."""
    pairs: list[tuple[str, Float32, Float32]] = []
    for d in [*range(1, 34), 63, 64, 65, 127, 128, 129, 383]:
        pair = rng.standard_normal((2, d)).astype(np.float32)
        pairs.append((f"random d={d}", pair[0], pair[1]))
    base = rng.standard_normal(19).astype(np.float32)
    other = rng.standard_normal(19).astype(np.float32)
    for exponent in (-149, -140, -126, -70, 70, 120):
        scaled = np.ldexp(base, exponent).astype(np.float32)
        if np.any(scaled != 0) and np.all(np.isfinite(scaled)):
            pairs.append((f"first scaled by 2^{exponent}", scaled, other))
            pairs.append((f"both scaled by 2^{exponent}", scaled, scaled[::-1].copy()))
    largest = np.float32(np.finfo(np.float32).max)
    smallest = np.float32(1.401298464324817e-45)
    pairs += [
        ("equal", base, base.copy()),
        ("opposite", base, -base),
        ("largest float32", np.full(7, largest), np.full(7, largest)),
        ("largest against smallest", np.full(5, largest), np.full(5, smallest)),
        ("smallest subnormal", np.array([smallest, 0], np.float32), np.array([1, 1], np.float32)),
        ("orthogonal", np.array([1, 0, 0], np.float32), np.array([0, 1, 0], np.float32)),
        (
            "one huge component",
            np.array([1e30, 1, 1], np.float32),
            np.array([1e-30, 1, 1], np.float32),
        ),
    ]
    return {
        "tolerance": 2e-6,
        "cosine": [
            {"name": name, "a": decimals(a), "b": decimals(b), "expected": cosine(a, b)}
            for name, a, b in pairs
        ],
        "errors": [{"name": n, "a": v, "b": [1.0] * 3, "code": c} for n, v, c in error_cases()],
        "search": search_cases(rng),
    }


def search_case(name: str, rows: Float32, query: Float32, k: int) -> Case | None:
    """Exact top-k, ties by row number; None when a near tie that is no exact tie decides."""
    scores = [cosine(row, query) for row in rows]
    order = sorted(range(len(rows)), key=lambda i: (-scores[i], i))
    for i, j in pairwise(order):
        if scores[i] - scores[j] < MARGIN and not np.array_equal(rows[i], rows[j]):
            return None
    best = order[:k]
    return {
        "name": name,
        "dimension": int(rows.shape[1]),
        "rows": decimals(rows.ravel()),
        "query": decimals(query),
        "k": k,
        "expected": {"rows": best, "scores": [scores[i] for i in best]},
    }


def search_cases(rng: np.random.Generator) -> list[Case]:
    """Search cases with distinct scores or exact ties."""
    cases: list[Case] = []
    for count, d, k in [(1, 4, 3), (5, 3, 5), (20, 8, 10), (40, 17, 10), (30, 33, 1), (12, 1, 12)]:
        while True:
            rows = rng.standard_normal((count, d)).astype(np.float32)
            if d == 1:
                rows = np.ones((count, d), np.float32)
            if count >= 20:
                rows[count // 2] = rows[3]
                rows[count - 1] = rows[3]
            query = (rows[3 % count] + 0.3 * rng.standard_normal(d)).astype(np.float32)
            case = search_case(f"n={count} d={d} k={k}", rows, query, k)
            if case is not None:
                cases.append(case)
                break
    return cases


# --- truncation ----------------------------------------------------------------------------------


def is_close_call(values: list[float]) -> bool:
    """Whether rounding could move the largest gap."""
    gaps = sorted((a - b for a, b in pairwise(values)), reverse=True)
    return len(gaps) > 1 and gaps[0] - gaps[1] < MARGIN


def truncate_case(name: str, scores: Float32, rows: Float32, options: dict[str, int]) -> Case:
    """One case of truncate.json."""
    expected, similarities = truncate(scores, rows, options)
    return {
        "name": name,
        "scores": decimals(scores),
        "dimension": int(rows.shape[1]),
        "embeddings": decimals(rows.ravel()),
        "options": options,
        "expected": expected,
        "similarities": similarities,
    }


def truncate_file(rng: np.random.Generator) -> Case:
    """Builds truncate.json."""
    cases: list[Case] = []
    variants: list[dict[str, int]] = [
        {},
        {"signals": SCORE},
        {"signals": SIMILARITY},
        {"after": 1},
        {"min_k": 3},
        {"max_k": 2},
        {"min_k": 4, "max_k": 4},
        {"min_k": 100},
        {"signals": SIMILARITY, "after": 1, "max_k": 5},
    ]

    def add(name: str, scores: Iterable[float], rows: Float32, **options: int) -> None:
        array = np.array(list(scores), np.float32)
        cases.append(truncate_case(name, array, rows, options))

    for n in (0, 1, 2, 3, 4, 10, 50):
        for d in (1, 2, 7, 33) if n < 50 else (8,):
            scores, rows = distinct_list(rng, n, d)
            for options in variants if d == 7 or n < 3 else variants[:2]:
                label = ", ".join(f"{key}={value}" for key, value in options.items()) or "defaults"
                cases.append(truncate_case(f"random n={n} d={d}: {label}", scores, rows, options))

    one = np.eye(4, dtype=np.float32)
    add("ties: all scores and embeddings equal", [0.5] * 6, np.tile(one[0], (6, 1)))
    add("ties: equal gaps of scores, the smallest i", [1, 0.75, 0.5, 0.25, 0], one[[0] * 5])
    pairs = one[[0, 0, 1, 1, 2, 2]]
    add("ties: equal gaps of similarities, the smallest i", [5, 4, 3, 2, 1, 0], pairs)
    add("ties: both signals at one place", [1, 0.9, 0.1, 0.05], one[[0, 0, 0, 1]])
    add("similarity gaps all negative or zero", [3, 2, 1], one[[0, 1, 1]])
    add("gap of one unit in the last place", [1.0, 1.0 - 2**-24, 1.0 - 2**-24], one[[0, 0, 0]])
    late = 0.5 - 2**-25
    add("a later gap larger by one unit", [1.0, 0.75, late, late], one[[0, 0, 0, 0]])
    add("negative scores", [-1, -2, -10, -10.5], one[[0, 1, 2, 3]])
    add("largest and smallest scores", [3.4028235e38, 0, -3.4028235e38], one[[0, 0, 0]])
    add("subnormal scores", [3e-45, 1.4e-45, 0], one[[0, 0, 1]])
    for exponent in (-149, -130, 100, 126):
        rows = np.ldexp(one[[0, 0, 1, 1, 1]], exponent).astype(np.float32)
        add(f"norms of 2^{exponent}", [5, 4, 3, 2, 1], rows)
    mixed = one[[0, 0, 1, 2, 2]] * np.array([[1e38], [1e-38], [1e20], [1], [1e-45]], np.float32)
    add("norms from 1e-45 to 1e38", [5, 4, 3, 2, 1], mixed)
    sizes = (3, 0, 1, 7, 2, 0, 12)
    lists = [truncate_case(f"list {n}", *distinct_list(rng, n, 5), {}) for n in sizes]
    return {
        "tolerance": 2e-6,
        "cases": cases,
        "batch": {"dimension": 5, "lists": lists},
        "errors": truncate_errors(),
    }


def distinct_list(rng: np.random.Generator, n: int, d: int) -> tuple[Float32, Float32]:
    """Draws a list whose largest gaps no rounding can move (at d = 1 similarities are exact)."""
    while True:
        scores = np.sort(rng.random(n).astype(np.float32))[::-1].copy()
        rows = rng.standard_normal((n, d)).astype(np.float32)
        similarities = [cosine(rows[i], rows[i + 1]) for i in range(n - 1)]
        close = is_close_call([float(s) for s in scores])
        if not close and (d == 1 or not is_close_call(similarities)):
            return scores, rows


def truncate_errors() -> list[Case]:
    """Inputs that truncation must refuse."""
    good = [1.0, 0.0, 0.0, 1.0, 1.0, 1.0]
    rows: list[Case] = [
        {
            "name": f"embedding: {name}",
            "scores": [2.0, 1.0],
            "embeddings": [*good[:3], *v],
            "code": code,
        }
        for name, v, code in error_cases()
    ]
    rows += [
        {"name": f"first embedding: {name}", "scores": [1.0], "embeddings": v, "code": code}
        for name, v, code in error_cases()
    ]
    bad_scores: list[tuple[str, list[float | str], str]] = [
        ("ascending", [1.0, 2.0], "FINCH_INVALID_ARGUMENT"),
        ("nan", [1.0, "NaN"], "FINCH_NOT_FINITE"),
        ("first nan", ["NaN", 1.0], "FINCH_NOT_FINITE"),
        ("infinity", ["Infinity", 1.0], "FINCH_NOT_FINITE"),
    ]
    rows += [
        {"name": f"scores: {n}", "scores": s, "embeddings": good, "code": c}
        for n, s, c in bad_scores
    ]
    for name, options in [
        ("max below min", {"min_k": 3, "max_k": 2}),
        ("unknown signal", {"signals": 4}),
        ("after", {"after": 2}),
    ]:
        rows.append(
            {
                "name": f"options: {name}",
                "scores": [2.0, 1.0],
                "embeddings": good,
                "options": options,
                "code": "FINCH_INVALID_ARGUMENT",
            }
        )
    return [{"dimension": 3, **row} for row in rows]


# --- bandit --------------------------------------------------------------------------------------


def bandit_case(
    rng: np.random.Generator, name: str, options: Case, updates: int, context: Callable[[], Float32]
) -> Case:
    """A sequence of updates, drops and scores over a few arms."""
    exact = {k: f32(v) if isinstance(v, float) else v for k, v in options.items()}
    bandit = Bandit(exact)
    ids = ["calendar.create", "calendar.list", "☂ météo", "a", "never used"]
    priors = {i: f32(rng.random()) for i in ids}
    steps: list[Case] = []

    def score() -> None:
        x, explore = context(), bool(rng.random() < 0.8)
        expected = [bandit.score(i, x, priors[i], explore) for i in ids]
        steps.append(
            {
                "do": "score",
                "ids": ids,
                "priors": decimals(priors[i] for i in ids),
                "x": decimals(x),
                "explore": int(explore),
                "expected": expected,
            }
        )

    score()
    for i in range(updates):
        arm_id = ids[int(rng.integers(0, len(ids) - 1))]
        x, y = context(), f32(float(rng.choice([0.0, 1.0, 0.3], p=[0.4, 0.5, 0.1])))
        bandit.update(arm_id, x, priors[arm_id], y)
        steps.append(
            {
                "do": "update",
                "id": arm_id,
                "x": decimals(x),
                "prior": number(priors[arm_id]),
                "y": number(y),
            }
        )
        if i == updates // 2:
            bandit.arms.pop("a", None)
            steps.append({"do": "drop", "ids": ["a", "never used"]})
        if i % max(1, updates // 4) == 0 or i == updates - 1:
            score()
    shown = {k: number(v) if isinstance(v, float) else v for k, v in options.items()}
    return {"name": name, "options": shown, "steps": steps}


def bandit_file(rng: np.random.Generator) -> Case:
    """Builds bandit.json."""
    cases: list[Case] = []
    for form in ("calibrated", "literal", "mean"):
        for d, updates in ((1, 20), (2, 20), (3, 20), (17, 24), (64, 24)):
            options = {"dimension": d, "form": form, "lambda": 1.0, "gamma": 0.95, "alpha": 0.1}

            def random_context(d: int = d) -> Float32:
                return rng.standard_normal(d).astype(np.float32)

            def one_hot(d: int = d) -> Float32:
                x = np.zeros(d, np.float32)
                x[int(rng.integers(0, d))] = np.float32(rng.choice([-2.0, 0.5, 1e20, 1e-30]))
                return x

            cases.append(bandit_case(rng, f"{form} d={d}", options, updates, random_context))
            if d in (2, 17):
                other = {**options, "lambda": 0.25, "gamma": 0.8, "alpha": 0.5}
                cases.append(bandit_case(rng, f"{form} d={d}, one-hot", other, 30, one_hot))
            if d == 3:
                never = {**options, "gamma": 1.0, "lambda": 4.0}
                name = f"{form} d={d}, nothing forgotten"
                cases.append(bandit_case(rng, name, never, 40, random_context))
    return {"tolerance": 2e-6, "cases": cases}


# --- availability --------------------------------------------------------------------------------


def availability_case(name: str, options: Case, events: list[tuple[float | None, float]]) -> Case:
    """A sequence of (y, now); y None reads."""
    state = Availability(f32(options["gamma"]), options["half_life"], options["half_life_max"])
    steps: list[Case] = []
    for y, now in events:
        if y is None:
            steps.append({"now": now, "expected": state.at(now)})
        else:
            state.observe(f32(y), now)
            steps.append({"now": now, "y": number(y)})
    return {"name": name, "options": options, "steps": steps}


def availability_file(rng: np.random.Generator) -> Case:
    """Builds availability.json."""
    usual = {"gamma": 0.5, "half_life": 30000.0, "half_life_max": 3600000.0}
    start = 1.7e12
    outage: list[tuple[float | None, float]] = [(None, start)]
    for i in range(12):
        now = start + 60000.0 * i
        outage += [(0.0, now), (None, now), (None, now + 30000.0)]
    outage += [(None, start + 1e7), (1.0, start + 1e7), (None, start + 1e7), (None, start + 1e9)]
    backwards: list[tuple[float | None, float]] = [
        (0.0, start),
        (None, start - 5000.0),
        (0.0, start - 5000.0),
        (None, start),
        (None, start + 30000.0),
        (1.0, start - 1e12),
        (None, 1e300),
        (None, -1e300),
    ]
    at_once: list[tuple[float | None, float]] = []
    for y in (0.0, 1.0, 0.0, 0.0, 0.5, 0.49, 0.25, 1.0, 1.0, 1.0):
        at_once += [(y, 0.0), (None, 0.0)]
    mixed: list[tuple[float | None, float]] = []
    now = 0.0
    for _ in range(60):
        now += float(int(rng.exponential(20000.0)))
        mixed.append((float(rng.integers(0, 2)) if rng.random() < 0.6 else None, now))
    capped: list[tuple[float | None, float]] = []
    for i in range(40):
        capped += [(0.0, float(i)), (None, i + 0.5)]
    capped += [(None, 200.0), (None, 1000.0)]
    return {
        "tolerance": 1e-6,
        "cases": [
            availability_case("an outage and its end", usual, outage),
            availability_case("a clock that goes backwards", usual, backwards),
            availability_case("outcomes at one time", usual, at_once),
            availability_case("mixed", usual, mixed),
            availability_case(
                "the half-life's cap",
                {"gamma": 0.9, "half_life": 1.0, "half_life_max": 64.0},
                capped,
            ),
        ],
    }


# --- fusion --------------------------------------------------------------------------------------


def fuse_case(name: str, weights: Case, columns: dict[str, Float32]) -> Case:
    """One case of fuse.json; columns that are absent are NULL."""
    return {
        "name": name,
        "weights": {k: number(v) if isinstance(v, float) else v for k, v in weights.items()},
        **{k: decimals(v) for k, v in columns.items()},
        "expected": fuse(weights, columns),
    }


def fuse_file(rng: np.random.Generator) -> Case:
    """Builds fuse.json."""
    cases: list[Case] = []
    settings: list[Case] = [
        {},
        {"outage": 1.0},
        {"outage": 0.3, "clamp": 1},
        {"clamp": 1},
        {"semantic": 1.0},
        {"semantic": 0.5, "bandit": 0.25, "prior": 0.25, "outage": 0.5},
        {"semantic": 0.33333, "bandit": 0.33333, "prior": 0.33333},
    ]
    for weights in settings:
        for count in (0, 1, 9):
            columns: dict[str, Float32] = {
                "semantic": rng.uniform(-1, 1, count).astype(np.float32),
                "p": rng.normal(0.5, 1, count).astype(np.float32),
                "prior": rng.random(count).astype(np.float32),
                "availability": rng.random(count).astype(np.float32),
            }
            label = ", ".join(f"{k}={v}" for k, v in weights.items()) or "defaults"
            cases.append(fuse_case(f"n={count}: {label}", weights, columns))
    semantic = rng.uniform(-1, 1, 5).astype(np.float32)
    prior = rng.random(5).astype(np.float32)
    cases += [
        fuse_case("semantic alone", {}, {"semantic": semantic}),
        fuse_case("p is the prior", {"outage": 1.0}, {"semantic": semantic, "prior": prior}),
        fuse_case("literal p far outside [0, 1]", {}, {"semantic": semantic, "p": prior * 40 - 20}),
    ]
    bad: list[tuple[str, Case, Case, str]] = [
        ("weights sum to 0.9", {"semantic": 0.9}, {}, "FINCH_INVALID_ARGUMENT"),
        ("negative weight", {"semantic": 1.5, "bandit": -0.5}, {}, "FINCH_INVALID_ARGUMENT"),
        ("outage above 1", {"outage": 1.5}, {}, "FINCH_INVALID_ARGUMENT"),
        ("clamp of 2", {"clamp": 2}, {}, "FINCH_INVALID_ARGUMENT"),
        ("semantic nan", {}, {"semantic": ["NaN"]}, "FINCH_NOT_FINITE"),
        ("p infinite", {}, {"p": ["Infinity"]}, "FINCH_NOT_FINITE"),
        ("prior nan", {}, {"prior": ["NaN"]}, "FINCH_NOT_FINITE"),
        ("prior above 1", {}, {"prior": [1.25]}, "FINCH_INVALID_ARGUMENT"),
        ("availability below 0", {}, {"availability": [-0.25]}, "FINCH_INVALID_ARGUMENT"),
    ]
    errors = [
        {"name": name, "weights": weights, "semantic": [0.5], **columns, "code": code}
        for name, weights, columns, code in bad
    ]
    return {"tolerance": 1e-7, "cases": cases, "errors": errors}


def main() -> int:
    """Writes or checks the files beside this script."""
    parser = argparse.ArgumentParser(description="golden vectors")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    check = parser.parse_args().check
    builders: dict[str, Callable[[np.random.Generator], Case]] = {
        "cosine": cosine_file,
        "truncate": truncate_file,
        "bandit": bandit_file,
        "fuse": fuse_file,
        "availability": availability_file,
    }
    stale = []
    for seed, (name, build) in enumerate(builders.items()):
        path = Path(__file__).with_name(f"{name}.json")
        content = {"format": 1, **build(np.random.default_rng(20_240 + seed))}
        if not check:
            path.write_text(dump(content), encoding="utf-8")
        elif not path.exists() or not is_same(
            json.loads(path.read_text(encoding="utf-8")), content
        ):
            stale.append(path.name)
    if stale:
        sys.stderr.write(f"stale: {', '.join(stale)}; run test/golden/generate.py\n")
    return 1 if stale else 0


def dump(content: Case) -> str:
    """JSON with one case a line."""
    parts = []
    for key, value in content.items():
        if isinstance(value, list):
            lines = ",\n".join(json.dumps(v, ensure_ascii=False, allow_nan=False) for v in value)
            parts.append(f"{json.dumps(key)}: [\n{lines}\n]")
        else:
            text = json.dumps(value, ensure_ascii=False, allow_nan=False)
            parts.append(f"{json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def is_same(a: Any, b: Any) -> bool:  # noqa: ANN401
    """Equal but for the last digits of numbers, which differ between builds of numpy."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(is_same(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(is_same, a, b))
    if isinstance(a, float) and isinstance(b, int | float):
        return abs(a - b) <= 1e-12 * max(1.0, abs(a), abs(b))
    return bool(a == b)


if __name__ == "__main__":
    raise SystemExit(main())
