"""Training and validation examples, split by tool and by server.

One pool of tools; queries whose gold tools lie in it. Real queries come from the train splits of
labelled sets; synthetic ones (`synthesis`) from catalogues. Held out for validation, tools
included: some tools of every labelled set with all their queries, and whole servers.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from toolfinch_training.index_text import Tool, index_text, split_words, tool_of
from toolfinch_training.labelled_files import labelled_queries, pairs, rows
from toolfinch_training.synthesis import phrase_of, synthesise

LABELLED = ("metatool", "sealtools")
CATALOGUES = ("catalog_mcp_toucan", "catalog_mcp_registries")
SYNTHETIC = "synthetic"
HELD_OUT = 0.1
HELD_OUT_SERVERS = 0.04
VALIDATION_POOL = 700


@dataclass(frozen=True)
class Example:
    """A query with the positions of its gold tools in the pool."""

    text: str
    gold: tuple[int, ...]
    source: str


@dataclass(frozen=True)
class ValidationSet:
    """Queries over a pool of tools of their own; `gold` are positions in `tools`."""

    name: str
    tools: tuple[str, ...]
    queries: tuple[str, ...]
    gold: tuple[tuple[int, ...], ...]


@dataclass
class Examples:
    """Everything a training run reads."""

    tools: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    train: list[Example] = field(default_factory=list)
    validation: list[ValidationSet] = field(default_factory=list)
    notes: dict[str, int] = field(default_factory=dict)
    # By labelled set, the ids of all train queries with a held-out tool.
    held_out: dict[str, list[str]] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        """Write as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), ensure_ascii=False), "utf-8")

    @staticmethod
    def load(path: Path) -> Examples:
        """Read what `save` wrote."""
        raw = json.loads(path.read_text("utf-8"))
        return Examples(
            tools=raw["tools"],
            names=raw["names"],
            train=[Example(row["text"], tuple(row["gold"]), row["source"]) for row in raw["train"]],
            validation=[
                ValidationSet(
                    row["name"],
                    tuple(row["tools"]),
                    tuple(row["queries"]),
                    tuple(tuple(gold) for gold in row["gold"]),
                )
                for row in raw["validation"]
            ],
            notes=raw["notes"],
            held_out=raw["held_out"],
        )


@dataclass(frozen=True)
class Sizes:
    """How much of each source is used."""

    catalogue_tools: int
    synthetic: int
    labelled_per_set: int
    validation: int = 300


class _Pool:
    """The tools, each text once."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.names: list[str] = []
        self._positions: dict[str, int] = {}

    def add(self, tool: Tool) -> int:
        text = index_text(tool)
        position = self._positions.setdefault(text, len(self.texts))
        if position == len(self.texts):
            self.texts.append(text)
            self.names.append(" ".join(split_words(tool.name)))
        return position


def build_examples(
    data: Path,
    sizes: Sizes,
    *,
    seed: int,
    more: Sequence[tuple[str, tuple[str, ...]]] = (),
) -> Examples:
    """Examples from the labelled sets and catalogues that lie under `data`.

    `more`: further queries with ids of catalogue tools (from `llm_queries`); those whose tools are
    held out or left out are dropped.
    """
    source = random.Random(seed)
    examples = Examples()
    pool = _Pool()
    for name in LABELLED:
        if (data / name).is_dir():
            _add_labelled(examples, pool, data / name, sizes, source)
    _add_synthetic(examples, pool, data, sizes, source, more)
    examples.tools, examples.names = pool.texts, pool.names
    source.shuffle(examples.train)
    return examples


def _add_labelled(
    examples: Examples, pool: _Pool, folder: Path, sizes: Sizes, source: random.Random
) -> None:
    tools = [tool_of(row) for row in rows(folder / "tools.jsonl")]
    by_id = {tool.id: tool for tool in tools}
    labelled = labelled_queries(folder, by_id, "train")
    used = sorted({tool for _, wanted in labelled for tool in wanted})
    # Where queries have many gold tools, fewer tools are held out, so that queries remain.
    share = HELD_OUT if max(len(wanted) for _, wanted in labelled) < 5 else HELD_OUT / 2
    held = set(source.sample(used, max(1, round(len(used) * share))))
    kept = [(row, gold) for row, gold in labelled if held.isdisjoint(gold)]
    left = [(row, gold) for row, gold in labelled if not held.isdisjoint(gold)]
    examples.held_out[folder.name] = [row["id"] for row, _ in left]
    inside = [(row["text"], gold) for row, gold in kept]
    outside = [(row["text"], gold) for row, gold in left]
    for text, wanted in source.sample(inside, min(sizes.labelled_per_set, len(inside))):
        positions = tuple(dict.fromkeys(pool.add(by_id[tool]) for tool in wanted))
        examples.train.append(Example(text, positions, folder.name))
    for entry in tools:
        if entry.id not in held and (entry.id in used or len(tools) < 1000):
            pool.add(entry)
    sample = source.sample(outside, min(sizes.validation, len(outside)))
    examples.validation.append(_validation(folder.name, tools, sample, source))
    examples.notes[f"{folder.name} held-out tools"] = len(held)
    examples.notes[f"{folder.name} queries left for training"] = len(inside)


def _add_synthetic(
    examples: Examples,
    pool: _Pool,
    data: Path,
    sizes: Sizes,
    source: random.Random,
    more: Sequence[tuple[str, tuple[str, ...]]],
) -> None:
    tools = [
        tool_of(row)
        for name in CATALOGUES
        if (data / name).is_dir()
        for row in rows(data / name / "tools.jsonl")
    ]
    if not tools:
        return
    forbidden = gold_keys_of_test_sets(data)
    allowed = [tool for tool in tools if not forbidden.intersection(_keys(tool))]
    examples.notes["catalogue tools equal to a test query's gold tool, left out"] = len(
        tools
    ) - len(allowed)
    usable = [tool for tool in allowed if phrase_of(tool) is not None]
    if not usable:
        return
    servers = sorted({tool.group for tool in usable})
    held = set(source.sample(servers, max(1, round(len(servers) * HELD_OUT_SERVERS))))
    train = [tool for tool in usable if tool.group not in held]
    train = source.sample(train, min(sizes.catalogue_tools, len(train)))
    positions = {tool.id: pool.add(tool) for tool in train}
    for query in synthesise(train, count=sizes.synthetic, seed=source.randrange(2**31)):
        gold = tuple(dict.fromkeys(positions[tool] for tool in query.gold))
        examples.train.append(Example(query.text, gold, SYNTHETIC))
    for text, wanted in more:
        if all(tool in positions for tool in wanted):
            gold = tuple(dict.fromkeys(positions[tool] for tool in wanted))
            examples.train.append(Example(text, gold, SYNTHETIC))
    outside = [tool for tool in usable if tool.group in held]
    queries = synthesise(outside, count=sizes.validation, seed=source.randrange(2**31))
    examples.validation.append(
        _validation(
            SYNTHETIC, outside, [(query.text, list(query.gold)) for query in queries], source
        )
    )
    examples.notes["held-out servers"] = len(held)
    examples.notes["catalogue tools in the pool"] = len(train)


def _validation(
    name: str,
    tools: Sequence[Tool],
    queries: Sequence[tuple[str, list[str]]],
    source: random.Random,
) -> ValidationSet:
    """The queries' gold tools among at most VALIDATION_POOL tools; equal texts are one tool."""
    needed = {tool for _, wanted in queries for tool in wanted}
    others = [tool.id for tool in tools if tool.id not in needed]
    filling = max(0, min(VALIDATION_POOL - len(needed), len(others)))
    chosen = needed | set(source.sample(others, filling))
    pool = _Pool()
    positions = {tool.id: pool.add(tool) for tool in tools if tool.id in chosen}
    return ValidationSet(
        name=name,
        tools=tuple(pool.texts),
        queries=tuple(text for text, _ in queries),
        gold=tuple(
            tuple(dict.fromkeys(positions[tool] for tool in wanted)) for _, wanted in queries
        ),
    )


def write_held_out(data: Path, examples: Examples, out: Path) -> None:
    """The held-out queries as labelled sets, to choose and calibrate with a trained model."""
    for name, held in examples.held_out.items():
        folder = out / name
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(data / name / "tools.jsonl", folder / "tools.jsonl")
        for file in ("queries.jsonl", "qrels.tsv", "splits.tsv"):
            _copy_lines(data / name / file, folder / file, set(held))


def _copy_lines(source: Path, target: Path, queries: set[str]) -> None:
    with source.open(encoding="utf-8") as lines, target.open("w", encoding="utf-8") as kept:
        for line in lines:
            query = json.loads(line)["id"] if line.startswith("{") else line.split("\t", 1)[0]
            if query in queries:
                kept.write(line)


def gold_keys_of_test_sets(data: Path) -> set[str]:
    """Keys of the tools that answer some test query of a set that is not trained on."""
    keys: set[str] = set()
    for folder in sorted(data.iterdir()):
        if folder.name in LABELLED or not (folder / "qrels.tsv").exists():
            continue
        gold = {tool for _, tool in pairs(folder / "qrels.tsv")}
        for row in rows(folder / "tools.jsonl"):
            if row["id"] in gold:
                keys.update(_keys(tool_of(row)))
    return keys


def _keys(tool: Tool) -> set[str]:
    """Equal name and beginning of the description, or equal name and server: the same tool."""
    name = " ".join(split_words(tool.name))
    said = " ".join(split_words(tool.description))[:80]
    server = " ".join(split_words(tool.group.rsplit("/", 1)[-1]))
    return {f"{name}|{said}", f"{name}@{server}"}
