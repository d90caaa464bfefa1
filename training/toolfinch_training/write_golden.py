"""Write the golden files that any implementation of the encoder must reproduce.

    python -m toolfinch_training.write_golden --model models/toolfinch-retriever \\
        --float32 work/float32 --out test/golden

`wordpiece.jsonl`: {"text", "ids"}: Hugging Face's BERT tokeniser, [CLS] and [SEP] included,
truncated to the model's maximum; special tokens inside a text are plain text to it
(split_special_tokens=True).
`encoder.jsonl`: {"text", "vector", "float32"}: the model's vector, one text a run on onnxruntime's
CPU provider, and its cosine with the vector of its float32 weights.
Both files are ASCII; other characters are \\uXXXX escapes, surrogate pairs above U+FFFF.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from toolfinch_training.base_model import load_base_model
from toolfinch_training.model_folder import MODEL_FILE, VOCABULARY_FILE, load_manifest
from toolfinch_training.reference import EncoderSession, ReferenceTokenizer, TorchEncoder
from toolfinch_training.tokenizer_texts import adversarial_texts, random_texts
from toolfinch_training.tool_texts import long_texts, tool_texts

WORDPIECE_FILE = "wordpiece.jsonl"
ENCODER_FILE = "encoder.jsonl"
_DECIMALS = 8


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True, help="model folder to read")
    parser.add_argument("--float32", type=Path, help="its weights (default: the base model's)")
    parser.add_argument("--out", type=Path, required=True, help="folder for the golden files")
    arguments = parser.parse_args()
    model: Path = arguments.model
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)

    tokenizer = ReferenceTokenizer(model / VOCABULARY_FILE, load_manifest(model)["maxTokens"])
    texts = dict.fromkeys([*adversarial_texts(), *tool_texts(), *long_texts(), *random_texts()])
    _write(out / WORDPIECE_FILE, ({"text": text, "ids": tokenizer.ids(text)} for text in texts))

    chosen = encoder_texts()
    ids = [tokenizer.ids(text) for text in chosen]
    vectors = EncoderSession((model / MODEL_FILE).read_bytes()).encode(ids)
    exact = TorchEncoder(arguments.float32 or load_base_model().folder).encode(ids)
    cosines = (vectors.astype(np.float64) * exact).sum(axis=1)
    _write(
        out / ENCODER_FILE,
        (
            {
                "text": text,
                "vector": [round(float(value), _DECIMALS) for value in vector],
                "float32": round(float(cosine), 6),
            }
            for text, vector, cosine in zip(chosen, vectors, cosines, strict=True)
        ),
    )
    print(f"{len(texts)} tokenised texts, {len(chosen)} vectors, least cosine {cosines.min():.5f}")


def encoder_texts() -> list[str]:
    """42 texts: ordinary, long, foreign and empty."""
    return [
        *tool_texts()[::40],
        *long_texts()[::4],
        "",
        " ",
        "a",
        "你好世界, 使用必应search搜索",
        "naïve café 👩‍👩‍👧‍👦 Straße",
        "[MASK] [SEP] is plain text here",
        "x" * 101,
        "tokenization " * 200,
        "{" * 40,
        "mañana \u0000 \ufffd end",
        "2024-05-06T07:08:09Z $1,234.56 (50%)",
        "SELECT name FROM users WHERE id = 42;",
        "the quick brown fox jumps over the lazy dog",
    ]


def _write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    lines = [json.dumps(row, separators=(",", ":")) for row in rows]
    path.write_text("\n".join(lines) + "\n", "ascii")


if __name__ == "__main__":
    main()
