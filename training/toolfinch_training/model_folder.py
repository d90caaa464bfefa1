"""The files of a Toolfinch model folder: written by an export, checked by anyone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolfinch_training.base_model import BaseModel, sha256_of
from toolfinch_training.bert_graph import INPUTS, OUTPUT

NAME = "all-minilm-l6-v2"
MAX_TOKENS = 256
MODEL_FILE = "model.onnx"
VOCABULARY_FILE = "vocab.txt"
MANIFEST_FILE = "manifest.json"
# Hybrid score below which the best tool of a query counts as irrelevant: about 1 % of answerable
# training queries lie below it (docs/retrieval.md, "Abstaining").
RELEVANCE_FLOOR = 0.26
REVISION_LENGTH = 12


@dataclass(frozen=True)
class Kind:
    """What a manifest says of the model itself; the defaults describe the untrained encoder."""

    name: str = NAME
    task: str = "encoder"
    output: str = OUTPUT
    relevance_floor: float | None = RELEVANCE_FLOOR
    training: Mapping[str, Any] | None = None


UNTRAINED = Kind()

_LICENCE = Path(__file__).resolve().parents[2] / "LICENSE"


def write_model_folder(
    folder: Path, base: BaseModel, model: bytes, *, batch_invariant: bool, kind: Kind = UNTRAINED
) -> None:
    """Write model, vocabulary, licence and manifest; the card is written apart."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MODEL_FILE).write_bytes(model)
    shutil.copyfile(base.vocabulary, folder / VOCABULARY_FILE)
    shutil.copyfile(_LICENCE, folder / "LICENSE")
    manifest = _manifest(folder, base, batch_invariant, kind)
    text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    (folder / MANIFEST_FILE).write_text(text, "utf-8")


def load_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a model folder."""
    manifest: dict[str, Any] = json.loads((folder / MANIFEST_FILE).read_text("utf-8"))
    return manifest


def verify_model_folder(folder: Path) -> None:
    """Check every file against the manifest; raise ValueError naming the first that differs."""
    manifest = load_manifest(folder)
    for name, expected in manifest["files"].items():
        actual = _file_entry(folder / name)
        if actual != expected:
            raise ValueError(f"{name} is {actual}, the manifest says {expected}")
    digest = manifest["files"][manifest["model"]["file"]]["sha256"]
    if manifest["revision"] != digest[:REVISION_LENGTH]:
        raise ValueError(f"revision {manifest['revision']} is not the model's {digest}")


def _manifest(folder: Path, base: BaseModel, batch_invariant: bool, kind: Kind) -> dict[str, Any]:
    files = {name: _file_entry(folder / name) for name in (MODEL_FILE, VOCABULARY_FILE)}
    manifest: dict[str, Any] = {
        "format": 1,
        "name": kind.name,
        "revision": files[MODEL_FILE]["sha256"][:REVISION_LENGTH],
        "task": kind.task,
        "dimension": base.shape.hidden,
        "maxTokens": MAX_TOKENS,
        "pooling": "none",
        "normalize": False,
        "tokenizer": {
            "type": "wordpiece",
            "vocab": VOCABULARY_FILE,
            "lowercase": True,
            "stripAccents": True,
            "chineseCharacters": True,
            "unknown": "[UNK]",
            "start": "[CLS]",
            "end": "[SEP]",
            "pad": "[PAD]",
            "maxWordCharacters": 100,
            "continuationPrefix": "##",
        },
        "model": {
            "file": MODEL_FILE,
            "inputs": list(INPUTS),
            "output": kind.output,
            "batchInvariant": batch_invariant,
        },
        "files": files,
        "relevanceFloor": kind.relevance_floor,
        "license": "Apache-2.0",
        "base": {
            "name": "sentence-transformers/all-MiniLM-L6-v2",
            "package": base.package,
            "packageVersion": base.version,
            "weights": "model.safetensors",
            "weightsSha256": base.weights_sha256,
        },
        "training": kind.training,
    }
    return {key: value for key, value in manifest.items() if value is not None}


def _file_entry(path: Path) -> dict[str, Any]:
    return {"sha256": sha256_of(path), "bytes": path.stat().st_size}
