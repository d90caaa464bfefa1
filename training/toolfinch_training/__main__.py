"""The command line: `python -m toolfinch_training COMMAND --help`."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from toolfinch_training.evaluate_reranker import measure_reranker
from toolfinch_training.evaluate_retriever import (
    SHARES,
    choose_share,
    measure_sets,
    onnx_encode,
    save_summary,
    table,
    torch_encode,
)
from toolfinch_training.examples import Examples, Sizes, build_examples, write_held_out
from toolfinch_training.export_reranker import export_reranker
from toolfinch_training.export_retriever import export_retriever
from toolfinch_training.index_text import tool_of
from toolfinch_training.llm_queries import Dropped, Endpoint, generate
from toolfinch_training.plot import plot_log
from toolfinch_training.synthesis import synthesise
from toolfinch_training.test_sets import BESIDE, MACRO
from toolfinch_training.train_reranker import RerankerSettings, train_reranker
from toolfinch_training.train_retriever import RetrieverSettings, train_retriever
from toolfinch_training.training_run import LOG

Settings = TypeVar("Settings", RetrieverSettings, RerankerSettings)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command."""
    parser = argparse.ArgumentParser(prog="python -m toolfinch_training", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _synthesise(_command(commands, "synthesise", "queries for a catalogue, from templates"))
    _generate(_command(commands, "generate", "queries for a catalogue, from a language model"))
    _prepare(_command(commands, "prepare", "training and validation examples"))
    _train(
        _command(commands, "train-retriever", "InfoNCE over in-batch and mined negatives"),
        RetrieverSettings(),
        _run_retriever,
    )
    reranker = _command(commands, "train-reranker", "point-wise, then list-wise")
    reranker.add_argument("--retriever", type=Path, help="weights to start and to mine from")
    _train(reranker, RerankerSettings(), _run_reranker)
    _choose(_command(commands, "choose-share", "the share of trained weights, on validation data"))
    _export(_command(commands, "export-retriever", "model folder, int8"))
    _export_reranker(_command(commands, "export-reranker", "model folder, int8"))
    _evaluate(_command(commands, "evaluate", "test sets: NDCG@10, Recall@10, Complete@10"))
    _evaluate_reranker(_command(commands, "evaluate-reranker", "test sets, before and after"))
    _plot(_command(commands, "plot", "loss and validation curves"))
    chosen = parser.parse_args(arguments)
    chosen.run(chosen)


def _command(commands: Any, name: str, text: str) -> argparse.ArgumentParser:  # noqa: ANN401
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    return parser


def _synthesise(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tools", type=Path, required=True, help="tools.jsonl")
    parser.add_argument("--out", type=Path, required=True, help="JSON lines: text, gold")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=11)

    def run(chosen: argparse.Namespace) -> None:
        queries = synthesise(_tools(chosen.tools), count=chosen.count, seed=chosen.seed)
        _write_lines(chosen.out, [dataclasses.asdict(query) for query in queries])

    parser.set_defaults(run=run)


def _generate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tools", type=Path, required=True, help="tools.jsonl")
    parser.add_argument("--out", type=Path, required=True, help="JSON lines: text, gold")
    parser.add_argument("--url", required=True, help="ends before /chat/completions")
    parser.add_argument("--model", required=True)
    parser.add_argument("--key-variable", default="OPENAI_API_KEY", help="environment variable")
    parser.add_argument("--per-tool", type=int, default=10)
    parser.add_argument("--seed", type=int, default=11)

    def run(chosen: argparse.Namespace) -> None:
        endpoint = Endpoint(chosen.url, chosen.model, os.environ.get(chosen.key_variable))
        dropped = Dropped()
        queries = generate(
            endpoint,
            _tools(chosen.tools),
            per_tool=chosen.per_tool,
            seed=chosen.seed,
            dropped=dropped,
        )
        _write_lines(chosen.out, [{"text": text, "gold": [tool]} for text, tool in queries])
        print(dropped)

    parser.set_defaults(run=run)


def _prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, required=True, help="folder of sets and catalogues")
    parser.add_argument("--out", type=Path, required=True, help="examples.json")
    parser.add_argument("--catalogue-tools", type=int, default=7000)
    parser.add_argument("--synthetic", type=int, default=16_000)
    parser.add_argument("--labelled", type=int, default=6500, help="most of each labelled set")
    parser.add_argument("--validation", type=int, default=250, help="most queries of each set")
    parser.add_argument("--queries", type=Path, help="more queries for catalogues, JSON lines")
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--held-out", type=Path, help="folder for labelled sets of these queries")

    def run(chosen: argparse.Namespace) -> None:
        sizes = Sizes(chosen.catalogue_tools, chosen.synthetic, chosen.labelled, chosen.validation)
        more = _read_lines(chosen.queries) if chosen.queries else []
        examples = build_examples(
            chosen.data,
            sizes,
            seed=chosen.seed,
            more=[(row["text"], tuple(row["gold"])) for row in more],
        )
        examples.save(chosen.out)
        if chosen.held_out:
            write_held_out(chosen.data, examples, chosen.held_out)
        print(f"{len(examples.train)} examples over {len(examples.tools)} tools")
        print(json.dumps(examples.notes, indent=2))

    parser.set_defaults(run=run)


def _train(
    parser: argparse.ArgumentParser,
    defaults: Settings,
    start: Callable[[argparse.Namespace, Settings], None],
) -> None:
    """An option for every number among the settings, under its own name."""
    parser.add_argument("--examples", type=Path, required=True, help="what `prepare` wrote")
    parser.add_argument("--out", type=Path, required=True, help="log, checkpoint and best weights")
    for field in dataclasses.fields(defaults):
        value = getattr(defaults, field.name)
        option = f"--{field.name.replace('_', '-')}"
        if isinstance(value, bool):
            parser.add_argument(option, action=argparse.BooleanOptionalAction, default=value)
        elif isinstance(value, int | float):
            parser.add_argument(option, type=type(value), default=value)
        elif value is None:
            parser.add_argument(option, type=int)

    def run(chosen: argparse.Namespace) -> None:
        given = {
            field.name: getattr(chosen, field.name)
            for field in dataclasses.fields(defaults)
            if hasattr(chosen, field.name)
        }
        start(chosen, dataclasses.replace(defaults, **given))
        plot_log(chosen.out / LOG, chosen.out / "curves.png")

    parser.set_defaults(run=run)


def _run_retriever(chosen: argparse.Namespace, settings: RetrieverSettings) -> None:
    train_retriever(chosen.examples, chosen.out, settings)


def _run_reranker(chosen: argparse.Namespace, settings: RerankerSettings) -> None:
    train_reranker(chosen.examples, chosen.retriever, chosen.out, settings)


def _choose(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--examples", type=Path, required=True)
    parser.add_argument("--weights", type=Path, required=True, help="best.pt or checkpoint.pt")
    parser.add_argument("--shares", type=float, nargs="+", default=list(SHARES))

    def run(chosen: argparse.Namespace) -> None:
        best, *_ = choose_share(Examples.load(chosen.examples), chosen.weights, chosen.shares)
        print(f"best share {best.share}: macro {best.macro:.2f}")

    parser.set_defaults(run=run)


def _export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--weights", type=Path, required=True, help="best.pt or checkpoint.pt")
    parser.add_argument("--share", type=float, default=1.0, help="of the trained weights")
    parser.add_argument("--work", type=Path, required=True, help="where float32 weights go")
    parser.add_argument("--out", type=Path, required=True, help="model folder to write")
    parser.add_argument("--name", help="default: the folder's")
    parser.add_argument("--settings", type=Path, help="the run's settings.json, for the manifest")
    parser.add_argument("--relevance-floor", type=float)

    def run(chosen: argparse.Namespace) -> None:
        parity = export_retriever(
            chosen.weights,
            chosen.share,
            chosen.work,
            chosen.out,
            name=chosen.name or chosen.out.name,
            training=_training(chosen.settings),
            relevance_floor=chosen.relevance_floor,
        )
        print(parity)

    parser.set_defaults(run=run)


def _export_reranker(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--weights", type=Path, required=True, help="best.pt or checkpoint.pt")
    parser.add_argument("--out", type=Path, required=True, help="model folder to write")
    parser.add_argument("--name", help="default: the folder's")
    parser.add_argument("--settings", type=Path, help="the run's settings.json, for the manifest")

    def run(chosen: argparse.Namespace) -> None:
        parity = export_reranker(
            chosen.weights,
            chosen.out,
            name=chosen.name or chosen.out.name,
            training=_training(chosen.settings),
        )
        print(parity)

    parser.set_defaults(run=run)


def _evaluate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument(
        "--model",
        action="append",
        required=True,
        help="NAME=FOLDER (as it ships), NAME=WEIGHTS.pt, or NAME=base; the first is the baseline",
    )
    parser.add_argument("--sets", nargs="+", default=[*MACRO, *BESIDE])
    parser.add_argument("--queries", type=int, default=1_000_000, help="most of each set")
    parser.add_argument("--out", type=Path, help="folder for one JSON file a model")

    def run(chosen: argparse.Namespace) -> None:
        results = {}
        for item in chosen.model:
            name, _, source = item.partition("=")
            path = Path(source)
            if source == "base":
                encode = torch_encode(None)
            elif path.is_dir():
                encode = onnx_encode(path)
            else:
                encode = torch_encode(path)
            results[name] = measure_sets(encode, chosen.data, chosen.sets, queries=chosen.queries)
            if chosen.out:
                save_summary(results[name], chosen.out / f"{name}.json")
        print(table(results))

    parser.set_defaults(run=run)


def _evaluate_reranker(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--encoder", type=Path, required=True, help="model folder")
    parser.add_argument("--reranker", type=Path, required=True, help="model folder")
    parser.add_argument("--sets", nargs="+", default=[*MACRO, *BESIDE])
    parser.add_argument("--queries", type=int, default=200, help="most of each set")
    parser.add_argument("--depth", type=int, default=50, help="candidates that are reranked")

    def run(chosen: argparse.Namespace) -> None:
        print(
            table(
                measure_reranker(
                    chosen.encoder,
                    chosen.reranker,
                    chosen.data,
                    chosen.sets,
                    queries=chosen.queries,
                    depth=chosen.depth,
                )
            )
        )

    parser.set_defaults(run=run)


def _plot(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="a .png or .svg file")
    parser.set_defaults(run=lambda chosen: plot_log(chosen.log, chosen.out))


def _tools(path: Path) -> list[Any]:
    return [tool_of(row) for row in _read_lines(path)]


def _training(settings: Path | None) -> dict[str, Any]:
    return {"settings": json.loads(settings.read_text("utf-8"))} if settings else {}


def _read_lines(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
