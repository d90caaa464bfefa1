"""Independent references: Hugging Face's tokenizer and BERT, and a plain onnxruntime session."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from numpy.typing import NDArray
from transformers import BertModel, BertTokenizer

from toolfinch_training.bert_graph import INPUTS, OUTPUT

Vectors = NDArray[np.float32]


class ReferenceTokenizer:
    """Hugging Face's BertTokenizer (the fast one); special tokens in a text are plain text."""

    def __init__(self, vocabulary: Path, max_tokens: int) -> None:
        self._tokenizer = BertTokenizer(vocab=str(vocabulary), do_lower_case=True)
        self._max_tokens = max_tokens

    def ids(self, text: str) -> list[int]:
        """The ids of a text with [CLS] and [SEP], truncated to the maximum."""
        encoded = self._tokenizer(
            text,
            truncation=True,
            max_length=self._max_tokens,
            split_special_tokens=True,
        )
        ids: list[int] = encoded["input_ids"]
        return ids


class EncoderSession:
    """An encoder on onnxruntime's CPU provider."""

    def __init__(self, model: bytes, threads: int = 1) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            model, options, providers=["CPUExecutionProvider"]
        )

    def batch(self, ids: Sequence[Sequence[int]]) -> Vectors:
        """Vectors [batch, dimension] of texts padded to the longest."""
        shape = (len(ids), max(len(row) for row in ids))
        tokens, mask, types = (np.zeros(shape, np.int64) for _ in INPUTS)
        for index, row in enumerate(ids):
            tokens[index, : len(row)] = row
            mask[index, : len(row)] = 1
        feed = dict(zip(INPUTS, (tokens, mask, types), strict=True))
        result: Vectors = self._session.run([OUTPUT], feed)[0]
        return result

    def encode(self, ids: Sequence[Sequence[int]]) -> Vectors:
        """Vectors [texts, dimension], one text at a time, without padding."""
        return np.concatenate([self.batch([row]) for row in ids])


class TorchEncoder:
    """The base model in PyTorch float32, mean-pooled and scaled to unit length."""

    def __init__(self, folder: Path) -> None:
        self._model = BertModel.from_pretrained(str(folder), attn_implementation="eager")
        self._model.train(False)

    def encode(self, ids: Sequence[Sequence[int]]) -> Vectors:
        """Vectors [texts, dimension], one text at a time, without padding."""
        with torch.inference_mode():
            pooled = [
                self._model(input_ids=torch.tensor([list(row)])).last_hidden_state.mean(dim=1)
                for row in ids
            ]
            unit = torch.nn.functional.normalize(torch.cat(pooled), dim=1)
        result: Vectors = unit.numpy()
        return result
