"""The reranker in PyTorch: query and tool in one input, one logit out.

The encoder reads `[CLS] query [SEP] tool [SEP]`, so every token sees the other text. The last
states are pooled by segment to unit vectors q and t, and the head scores q * t and |q - t|:

    logit = w . (q * t) + v . tanh(W [q * t; |q - t|] + b) + c

At the start w is `START_SCALE` everywhere and v is zero: the logit is a scaled cosine, so training
begins at about what a retriever with the same weights knows, and learns what a pair adds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from toolfinch_training.base_model import load_base_model
from toolfinch_training.torch_encoder import load_bert

START_SCALE = 12.0
START_BIAS = -6.0
INNER = 64
Pair = tuple[list[int], int]


class CrossEncoder(nn.Module):
    """BERT with a head over both segments."""

    def __init__(self, folder: Path | None = None) -> None:
        super().__init__()
        self.bert = load_bert(folder)
        hidden = self.bert.config.hidden_size
        self.product = nn.Linear(hidden, 1)
        self.inner = nn.Linear(2 * hidden, INNER)
        self.outer = nn.Linear(INNER, 1, bias=False)
        nn.init.constant_(self.product.weight, START_SCALE)
        nn.init.constant_(self.product.bias, START_BIAS)
        nn.init.zeros_(self.outer.weight)

    def forward(self, tokens: Tensor, mask: Tensor, segments: Tensor) -> Tensor:
        """Logits [batch, 1] in float32."""
        hidden = self.bert(
            input_ids=tokens, attention_mask=mask, token_type_ids=segments
        ).last_hidden_state.float()
        second = segments * mask
        first = mask - second
        query, tool = (
            nn.functional.normalize((hidden * part[:, :, None]).sum(dim=1), dim=1)
            for part in (first, second)
        )
        product = query * tool
        with torch.autocast(hidden.device.type, enabled=False):
            features = torch.cat([product, (query - tool).abs()], dim=1)
            inner = torch.tanh(self.inner(features))
            logit: Tensor = self.product(product) + self.outer(inner)
        return logit

    def start_from(self, encoder: Mapping[str, Tensor]) -> None:
        """Take over a retriever's weights."""
        self.bert.load_state_dict(encoder)


class Pairs:
    """Token ids of pairs, as the product lays them out."""

    def __init__(self, query_tokens: int, max_tokens: int) -> None:
        vocabulary = load_base_model().vocabulary.read_text("utf-8").splitlines()
        self._end = vocabulary.index("[SEP]")
        self._query_tokens = query_tokens
        self._max_tokens = max_tokens

    def pair(self, query: Sequence[int], tool: Sequence[int]) -> Pair:
        """Ids, and where the second segment begins, from ids with [CLS] and [SEP] of each text.

        The query keeps at most its share; the tool's end is cut.
        """
        first = list(query[: self._query_tokens])
        first[-1] = self._end
        second = list(tool[1 : 1 + self._max_tokens - len(first)])
        second[-1] = self._end
        return [*first, *second], len(first)


def batch_of(pairs: Sequence[Pair]) -> tuple[Tensor, Tensor, Tensor]:
    """Token ids, mask and segments [batch, longest]."""
    longest = max(len(ids) for ids, _ in pairs)
    tokens, mask, segments = (
        torch.zeros((len(pairs), longest), dtype=torch.long) for _ in range(3)
    )
    for row, (ids, second) in enumerate(pairs):
        tokens[row, : len(ids)] = torch.tensor(ids)
        mask[row, : len(ids)] = 1
        segments[row, second : len(ids)] = 1
    return tokens, mask, segments


def score_pairs(
    model: CrossEncoder, pairs: Sequence[Pair], *, bfloat16: bool, tokens_per_batch: int = 1024
) -> Tensor:
    """Logits [pairs] in batches of about equal length, with the gradient if one is recorded."""
    lengths = [len(ids) for ids, _ in pairs]
    order = sorted(range(len(pairs)), key=lambda index: lengths[index])
    parts: list[Tensor] = []
    start = 0
    while start < len(order):
        end = start + 1
        while end < len(order) and (end + 1 - start) * lengths[order[end]] <= tokens_per_batch:
            end += 1
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bfloat16):
            logits = model(*batch_of([pairs[index] for index in order[start:end]]))
        parts.append(logits[:, 0])
        start = end
    inverse = torch.empty(len(order), dtype=torch.long)
    inverse[torch.tensor(order)] = torch.arange(len(order))
    return torch.cat(parts)[inverse]
