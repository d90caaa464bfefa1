"""A small data folder in the format that the commands read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

VERBS = ("Get", "List", "Create", "Delete", "Search", "Update")
THINGS = (
    "weather forecast of a city",
    "invoices of a customer",
    "playlist with songs",
    "calendar event for a meeting",
    "flight between two airports",
    "issues of a repository",
    "recipe with given ingredients",
    "stock price of a company",
)


def write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def write_tools(folder: Path, prefix: str) -> list[dict[str, Any]]:
    folder.mkdir(parents=True)
    tools = [
        {
            "id": f"{prefix}{index}",
            "name": f"{verb.lower()}_{thing.split()[0]}",
            # Catalogues' tools that equal a test set's are left out, so every folder has its own.
            "description": f"{verb} the {prefix} {thing}, with details.",
            "source": f"{prefix}-server-{index % 5}",
            "parameters": {"name": {"type": "string"}, "limit": {"type": "number"}},
        }
        for index, (verb, thing) in enumerate((verb, thing) for verb in VERBS for thing in THINGS)
    ]
    write_lines(folder / "tools.jsonl", tools)
    return tools


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data")
    for name in ("metatool", "apibank"):
        tools = write_tools(root / name, name)
        queries, relevant, splits = [], [], []
        for index, tool in enumerate(tools):
            for number, split in enumerate(("train", "train", "test")):
                query = f"q{index}-{number}"
                text = f"Please {tool['description'][:-1].lower()} number {number}"
                queries.append({"id": query, "text": text, "kind": "single"})
                relevant.append(f"{query}\t{tool['id']}\n")
                splits.append(f"{query}\t{split}\n")
        write_lines(root / name / "queries.jsonl", queries)
        (root / name / "qrels.tsv").write_text("".join(relevant))
        (root / name / "splits.tsv").write_text("".join(splits))
    write_tools(root / "catalog_mcp_toucan", "toucan")
    return root
