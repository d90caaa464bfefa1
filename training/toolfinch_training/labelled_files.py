"""The files of a labelled set: tools.jsonl, queries.jsonl, qrels.tsv, splits.tsv."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a .jsonl file."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def pairs(path: Path) -> Iterator[tuple[str, str]]:
    """The first two columns of a .tsv file."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            first, second = line.rstrip("\n").split("\t")[:2]
            yield first, second


def labelled_queries(
    folder: Path, tools: Container[str], split: str
) -> list[tuple[dict[str, Any], list[str]]]:
    """Queries of a split that have gold tools among `tools`, with the ids of these."""
    gold: defaultdict[str, list[str]] = defaultdict(list)
    for query, tool in pairs(folder / "qrels.tsv"):
        if tool in tools:
            gold[query].append(tool)
    wanted = {query for query, name in pairs(folder / "splits.tsv") if name == split}
    return [
        (row, gold[row["id"]])
        for row in rows(folder / "queries.jsonl")
        if row["id"] in wanted and row["id"] in gold
    ]
