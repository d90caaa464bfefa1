"""Reads labelled tool retrieval data: tools.jsonl, queries.jsonl, qrels.tsv, splits.tsv."""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_WORD_BREAK = re.compile(r"[_\-./:]+|(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True)
class RetrievalSet:
    """Tools with their texts, queries, and for each query the indices of its tools."""

    name: str
    tools: list[str]
    queries: list[str]
    relevant: list[set[int]]


def tool_text(tool: dict[str, Any]) -> str:
    """What of a tool is embedded: name split into words, description, argument names."""
    arguments = tool.get("parameters") or {}
    parts = [
        " ".join(_WORD_BREAK.sub(" ", str(tool["name"])).split()),
        str(tool.get("description") or ""),
        " ".join(arguments) if isinstance(arguments, dict) else "",
    ]
    return "\n".join(part for part in parts if part)


def load_retrieval_set(folder: Path, *, queries: int, seed: int) -> RetrievalSet:
    """A set with a sample of at most `queries` of its test queries."""
    tools = _rows(folder / "tools.jsonl")
    index = {tool["id"]: position for position, tool in enumerate(tools)}
    relevant: defaultdict[str, set[int]] = defaultdict(set)
    for query, tool in _pairs(folder / "qrels.tsv"):
        if tool in index:
            relevant[query].add(index[tool])
    test = {query for query, split in _pairs(folder / "splits.tsv") if split == "test"}
    rows = [
        row
        for row in _rows(folder / "queries.jsonl")
        if row["id"] in test and relevant.get(row["id"])
    ]
    sample = random.Random(seed).sample(rows, min(queries, len(rows)))
    return RetrievalSet(
        name=folder.name,
        tools=[tool_text(tool) for tool in tools],
        queries=[row["text"] for row in sample],
        relevant=[relevant[row["id"]] for row in sample],
    )


def sample_texts(data: Path, *, count: int, seed: int) -> list[str]:
    """Tool texts and queries drawn in about equal numbers from every file under `data`."""
    source = random.Random(seed)
    files = sorted([*data.glob("*/tools.jsonl"), *data.glob("*/queries.jsonl")])
    if not files:
        raise SystemExit(f"no */tools.jsonl under {data}")
    share = -(-count // len(files))
    texts: list[str] = []
    for file in files:
        rows = _rows(file)
        for row in source.sample(rows, min(share, len(rows))):
            texts.append(row["text"] if "text" in row else tool_text(row))
    source.shuffle(texts)
    return texts[:count]


def _rows(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _pairs(path: Path) -> list[tuple[str, str]]:
    with path.open(encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    return [(row[0], row[1]) for row in rows]
