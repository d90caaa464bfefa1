"""Weights of a training run: read, mixed with the base model's, and written as a BERT folder.

Fine-tuning on few kinds of data costs a model what it knew of others; a mean of its weights with
those it started from keeps most of both (Wortsman et al. 2022, arXiv:2109.01903). The share of the
trained weights is chosen on validation data.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import load_file, save_file
from torch import Tensor
from transformers import BertModel

from toolfinch_training.base_model import BaseModel, load_base_model
from toolfinch_training.torch_encoder import State, load_bert

WEIGHTS = "model.safetensors"


def load_state(path: Path) -> State:
    """Weights of a run: a file of weights, or a checkpoint that holds them."""
    saved = torch.load(path, weights_only=True)
    state: State = saved.get("model", saved)
    return state


def mixed(base: Mapping[str, Tensor], trained: Mapping[str, Tensor], share: float) -> State:
    """(1 - share) base + share trained, tensor by tensor."""
    if not 0 <= share <= 1:
        raise ValueError(f"share is {share}, expected a number from 0 to 1")
    return {
        name: torch.lerp(base[name], value, share) if value.is_floating_point() else value
        for name, value in trained.items()
    }


def model_with(state: Mapping[str, Tensor], *, layers: int | None = None) -> BertModel:
    """The base model's architecture with these weights, ready to encode."""
    model = load_bert(layers=layers)
    model.load_state_dict(state)
    model.train(False)
    return model


def write_bert_folder(folder: Path, state: Mapping[str, Tensor]) -> None:
    """Write weights with the base model's configuration and vocabulary."""
    base = load_base_model()
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(base.folder / "config.json", folder / "config.json")
    shutil.copyfile(base.vocabulary, folder / "vocab.txt")
    arrays = {
        name: np.ascontiguousarray(value.float().numpy())
        for name, value in state.items()
        if value.is_floating_point()
    }
    save_file(arrays, folder / WEIGHTS)


def load_bert_folder(folder: Path) -> BaseModel:
    """A trained model in the shape that the export takes; the origin stays the base model's."""
    base = load_base_model()
    return replace(
        base,
        folder=folder,
        weights=load_file(folder / WEIGHTS),
        vocabulary=folder / "vocab.txt",
    )
