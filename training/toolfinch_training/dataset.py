"""Reads labelled tool retrieval data: tools.jsonl, queries.jsonl, qrels.tsv, splits.tsv."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolfinch_training.labelled_files import labelled_queries, rows

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
    tools = list(rows(folder / "tools.jsonl"))
    index = {tool["id"]: position for position, tool in enumerate(tools)}
    labelled = labelled_queries(folder, index, "test")
    sample = random.Random(seed).sample(labelled, min(queries, len(labelled)))
    return RetrievalSet(
        name=folder.name,
        tools=[tool_text(tool) for tool in tools],
        queries=[row["text"] for row, _ in sample],
        relevant=[{index[tool] for tool in gold} for _, gold in sample],
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
        entries = list(rows(file))
        for row in source.sample(entries, min(share, len(entries))):
            texts.append(row["text"] if "text" in row else tool_text(row))
    source.shuffle(texts)
    return texts[:count]
