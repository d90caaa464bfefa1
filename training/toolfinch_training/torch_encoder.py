"""The encoder in PyTorch: token ids in, unit vectors out, for training and for mining."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor
from transformers import BertModel

from toolfinch_training.base_model import load_base_model
from toolfinch_training.reference import ReferenceTokenizer

State = dict[str, Tensor]


class Tokens:
    """Token ids of texts, truncated."""

    def __init__(self, max_tokens: int) -> None:
        self._tokenizer = ReferenceTokenizer(load_base_model().vocabulary, max_tokens)

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text with [CLS] and [SEP]."""
        return [self._tokenizer.ids(text) for text in texts]


def load_bert(folder: Path | None = None, *, layers: int | None = None) -> BertModel:
    """The base model (or the one in `folder`) without pooler, dropout off; some layers if asked."""
    source = folder or load_base_model().folder
    model = BertModel.from_pretrained(
        str(source),
        add_pooling_layer=False,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        attn_implementation="eager",
    )
    if layers is not None:
        model.encoder.layer = model.encoder.layer[:layers]
    return model


def encode_batch(model: BertModel, ids: Sequence[Sequence[int]], *, bfloat16: bool) -> Tensor:
    """Unit vectors [batch, hidden] in float32; products in bfloat16 when asked."""
    tokens, mask = padded(ids)
    device = model.device
    tokens, mask = tokens.to(device), mask.to(device)
    with torch.autocast(device.type, dtype=torch.bfloat16, enabled=bfloat16):
        hidden = model(input_ids=tokens, attention_mask=mask).last_hidden_state
    total = (hidden.float() * mask[:, :, None]).sum(dim=1)
    return torch.nn.functional.normalize(total, dim=1)


def encode_sorted(
    model: BertModel, ids: Sequence[Sequence[int]], *, bfloat16: bool, tokens_per_batch: int = 1024
) -> Tensor:
    """Encode in batches of about equal length, with the gradient if one is recorded."""
    order = sorted(range(len(ids)), key=lambda index: len(ids[index]))
    parts: list[Tensor] = []
    start = 0
    while start < len(order):
        end = start + 1
        while end < len(order) and (end + 1 - start) * len(ids[order[end]]) <= tokens_per_batch:
            end += 1
        parts.append(
            encode_batch(model, [ids[index] for index in order[start:end]], bfloat16=bfloat16)
        )
        start = end
    inverse = torch.empty(len(order), dtype=torch.long)
    inverse[torch.tensor(order)] = torch.arange(len(order))
    return torch.cat(parts)[inverse.to(parts[0].device)]


def padded(ids: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Token ids and mask [batch, longest]."""
    longest = max(len(row) for row in ids)
    tokens = torch.zeros((len(ids), longest), dtype=torch.long)
    mask = torch.zeros((len(ids), longest), dtype=torch.long)
    for index, row in enumerate(ids):
        tokens[index, : len(row)] = torch.tensor(list(row))
        mask[index, : len(row)] = 1
    return tokens, mask
