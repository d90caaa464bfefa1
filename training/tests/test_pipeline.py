"""The whole pipeline on a toy subset: the commands of the README, a few steps each."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from toolfinch_training.__main__ import main
from toolfinch_training.examples import Examples
from toolfinch_training.labelled_files import labelled_queries, rows
from toolfinch_training.model_folder import load_manifest, verify_model_folder
from toolfinch_training.plot import read_log


def run(*arguments: object) -> None:
    main([str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def work(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything up to trained weights."""
    work = tmp_path_factory.mktemp("work")
    small = ("--catalogue-tools", 30, "--synthetic", 60, "--labelled", 60, "--validation", 10)
    held_out = ("--held-out", work / "held-out")
    run("prepare", "--data", data, "--out", work / "examples.json", *held_out, *small)
    options = ("--examples", work / "examples.json", "--validate-every", 2, "--rounds", 2)
    run(
        "train-retriever", *options, "--out", work / "retriever", "--steps", 4, "--batch", 12,
        "--learning-rate", 1e-4, "--layers", 2, "--checkpoint-minutes", 0,
    )  # fmt: skip
    return work


def events(log: Path, kind: str) -> list[dict[str, float]]:
    return [row for row in read_log(log) if row["event"] == kind]


def test_held_out_queries_are_not_trained_on(work: Path) -> None:
    examples = Examples.load(work / "examples.json")
    trained = {example.text for example in examples.train}
    folders = sorted((work / "held-out").iterdir())
    assert [folder.name for folder in folders] == sorted(examples.held_out)
    for folder in folders:
        tools = {row["id"] for row in rows(folder / "tools.jsonl")}
        held = [row["text"] for row, _ in labelled_queries(folder, tools, "train")]
        assert held
        assert not trained.intersection(held)
        validation = next(item for item in examples.validation if item.name == folder.name)
        assert set(validation.queries) <= set(held)


def test_training_logs_mines_and_learns(work: Path) -> None:
    log = work / "retriever" / "log.jsonl"
    assert [row["round"] for row in events(log, "mined")] == [0, 1]
    steps = events(log, "step")
    assert [row["step"] for row in steps] == [0, 1, 2, 3]
    assert all(np.isfinite(row["loss"]) and row["loss"] > 0 for row in steps)
    assert events(log, "validation")[-1]["step"] == 4
    assert (work / "retriever" / "curves.png").stat().st_size > 1000


def test_a_stopped_run_goes_on(work: Path, tmp_path: Path) -> None:
    """Two steps, then two more, give the weights of four steps in one go."""
    import torch

    options = (
        "--examples", work / "examples.json", "--batch", 12, "--workers", 1, "--layers", 1,
        "--no-bfloat16", "--warmup", 0, "--checkpoint-minutes", 0, "--validate-every", 100,
        "--minutes", 1000,
    )  # fmt: skip
    run("train-retriever", *options, "--out", tmp_path / "whole", "--steps", 4)
    import shutil

    from toolfinch_training import train_retriever

    class Stop(Exception):
        pass

    original = train_retriever.Sampler.batch

    def stopping(self: train_retriever.Sampler, step: int) -> list[int]:
        if step == 2:
            raise Stop
        return original(self, step)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train_retriever.Sampler, "batch", stopping)
        with pytest.raises(Stop):
            run("train-retriever", *options, "--out", tmp_path / "parts", "--steps", 4)
    shutil.copy(tmp_path / "parts" / "checkpoint.pt", tmp_path / "stopped.pt")
    assert torch.load(tmp_path / "stopped.pt", weights_only=True)["step"] == 2
    run("train-retriever", *options, "--out", tmp_path / "parts", "--steps", 4)
    whole, parts = (
        torch.load(tmp_path / name / "checkpoint.pt", weights_only=True)["model"]
        for name in ("whole", "parts")
    )
    for name, value in whole.items():
        torch.testing.assert_close(parts[name], value, rtol=1e-4, atol=1e-6)


def test_export_and_evaluation(
    work: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    full = work / "full"
    options = ("--examples", work / "examples.json", "--workers", 1, "--validate-every", 100)
    run("train-retriever", *options, "--out", full, "--steps", 2, "--batch", 8)
    run("choose-share", "--examples", work / "examples.json", "--weights", full / "best.pt",
        "--shares", 0, 1)  # fmt: skip
    assert "best share" in capsys.readouterr().out
    folder = tmp_path / "toy-retriever"
    run(
        "export-retriever", "--weights", full / "checkpoint.pt", "--share", 0.5,
        "--work", tmp_path / "float32", "--out", folder, "--settings", full / "settings.json",
    )  # fmt: skip
    verify_model_folder(folder)
    manifest = load_manifest(folder)
    assert (manifest["name"], manifest["task"]) == ("toy-retriever", "encoder")
    assert manifest["training"]["shareOfTrainedWeights"] == 0.5
    assert "relevanceFloor" not in manifest
    run("evaluate", "--data", data, "--model", "base=base", "--model", f"toy={folder}",
        "--sets", "metatool", "apibank", "--out", tmp_path / "scores")  # fmt: skip
    scores = json.loads((tmp_path / "scores" / "toy.json").read_text())
    assert scores["metatool"]["ndcg10"] > 30
    assert "| mean of 2 |" in capsys.readouterr().out


def test_reranker(
    work: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "reranker"
    run(
        "train-reranker", "--examples", work / "examples.json", "--out", out, "--steps", 4,
        "--lists", 4, "--list-length", 4, "--rounds", 2, "--queries", 40, "--mined-queries", 8,
        "--validation-queries", 5, "--workers", 2, "--point-share", 0.5,
    )  # fmt: skip
    steps = events(out / "log.jsonl", "step")
    assert [row["stage"] for row in steps] == ["point-wise"] * 2 + ["list-wise"] * 2
    assert all(np.isfinite(row["loss"]) for row in steps)
    folder = tmp_path / "toy-reranker"
    run("export-reranker", "--weights", out / "best.pt", "--out", folder)
    assert load_manifest(folder)["task"] == "reranker"
    assert load_manifest(folder)["model"]["output"] == "logits"
    root = Path(__file__).resolve().parents[2]
    run(
        "evaluate-reranker", "--data", data, "--encoder", root / "models" / "all-minilm-l6-v2",
        "--reranker", folder, "--sets", "apibank", "--queries", 6, "--depth", 10,
    )  # fmt: skip
    assert "apibank: retrieved" in capsys.readouterr().out
