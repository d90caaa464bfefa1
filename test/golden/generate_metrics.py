"""Writes metrics.json beside this file: rankings, labels, trec_eval's figures.

Run: pip install pytrec_eval-terrier==0.5.11 && python generate_metrics.py

trec_eval takes the relevance itself as the gain of NDCG; handing it 2^rel - 1 as the
relevance gives the exponential gain. Completeness@k is 1 where its recall_k is 1.
"""

import json
import random
from pathlib import Path

import pytrec_eval

KS = (1, 2, 3, 5, 10, 20, 50)


def measure(
    ranking: list[str], relevance: dict[str, int], measures: set[str]
) -> dict[str, float]:
    """trec_eval's figures of one ranking."""
    evaluator = pytrec_eval.RelevanceEvaluator({"q": relevance}, measures)
    run = {tool: float(len(ranking) - i) for i, tool in enumerate(ranking)}
    return evaluator.evaluate({"q": run})["q"]


def case(ranking: list[str], gold: dict[str, int]) -> dict[str, object]:
    """One ranking with everything that is expected of it."""
    ks = ",".join(map(str, KS))
    gains = {tool: 2**relevance - 1 for tool, relevance in gold.items()}
    ndcg = measure(ranking, gains, {f"ndcg_cut.{ks}"})
    rest = measure(ranking, gold, {f"recall.{ks}", "recip_rank"})
    return {
        "ranking": ranking,
        "gold": gold,
        "ndcg": [ndcg[f"ndcg_cut_{k}"] for k in KS],
        "recall": [rest[f"recall_{k}"] for k in KS],
        "completeness": [int(rest[f"recall_{k}"] == 1.0) for k in KS],
        "reciprocalRank": rest["recip_rank"],
    }


def main() -> None:
    """Write metrics.json beside this file."""
    draw = random.Random(20250101)
    cases = []
    for number in range(80):
        tools = [f"t{i}" for i in range(draw.choice((3, 12, 40, 90)))]
        most = draw.choice((1, 1, 3))
        size = draw.randint(1, min(len(tools), draw.choice((1, 3, 15))))
        gold = {tool: draw.randint(1, most) for tool in draw.sample(tools, size)}
        if number % 4 == 0:
            judged = dict.fromkeys(draw.sample(tools, 2), 0)
            gold = judged | gold
        ranking = draw.sample(tools, draw.randint(1, len(tools)))
        cases.append(case(ranking, gold))
    lines = ",\n".join("    " + json.dumps(one) for one in cases)
    text = f'{{\n  "ks": {json.dumps(KS)},\n  "cases": [\n{lines}\n  ]\n}}\n'
    Path(__file__).with_name("metrics.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
