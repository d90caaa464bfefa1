"""Write the golden file of pairs that any implementation of the reranker's input must reproduce.

    python -m toolfinch_training.write_pair_golden --model models/all-minilm-l6-v2 --out test/golden

`pairs.jsonl`: {"query", "document", "maxTokens", "truncation", "ids", "documentAt"}: Hugging Face's
BERT tokeniser on a pair, [CLS] query [SEP] document [SEP]; `documentAt` is the first place with
token type 1; `truncation` is "longest-first" (longest_first) or "document-first" (only_second).
Special tokens inside a text are plain text to it. ASCII; other characters are \\uXXXX escapes.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import Any

from transformers import BertTokenizer

from toolfinch_training.model_folder import VOCABULARY_FILE
from toolfinch_training.tokenizer_texts import adversarial_texts, random_texts
from toolfinch_training.tool_texts import long_texts, tool_texts

PAIRS_FILE = "pairs.jsonl"
SEED = 77
_STRATEGIES = {"longest-first": "longest_first", "document-first": "only_second"}
_ROOMS = (5, 6, 7, 8, 16, 33, 64, 127, 128, 256)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True, help="model folder to read")
    parser.add_argument("--out", type=Path, required=True, help="folder for the golden file")
    arguments = parser.parse_args()
    tokenizer = BertTokenizer(vocab=str(arguments.model / VOCABULARY_FILE), do_lower_case=True)
    rows = [row for pair in _pairs() if (row := _row(tokenizer, *pair)) is not None]
    lines = [json.dumps(row, separators=(",", ":")) for row in rows]
    (arguments.out / PAIRS_FILE).write_text("\n".join(lines) + "\n", "ascii")
    print(f"{len(rows)} pairs")


def _pairs() -> list[tuple[str, str, int, str]]:
    """Queries and documents of every kind, among them both too long, in rooms odd and even."""
    chance = random.Random(SEED)
    texts = [
        text
        for text in [*adversarial_texts(), *tool_texts(), *long_texts(), *random_texts()]
        if len(text) <= 2000
    ]
    chosen = chance.sample(texts, 300)
    pairs = [(chance.choice(chosen), text, chance.choice(_ROOMS)) for text in chosen]
    pairs += [
        ("a " * first, "b " * second, room)
        for room in (5, 12, 13)
        for first in (0, 1, 4, 5, 6, 9, 10, 30)
        for second in (0, 1, 4, 5, 6, 9, 10, 31)
    ]
    pairs += [("[SEP] and [CLS]", "[PAD] [SEP]", 64), ("", "", 5)]
    return [(*pair, strategy) for pair in pairs for strategy in _STRATEGIES]


def _row(
    tokenizer: BertTokenizer, query: str, document: str, room: int, strategy: str
) -> dict[str, Any] | None:
    alone = tokenizer(query, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    if strategy == "document-first" and len(alone) >= room - 3:
        return None  # only_second has no answer where nothing of the document is left
    encoded = tokenizer(
        query,
        # An empty second text would be taken for none.
        document or " ",
        truncation=_STRATEGIES[strategy],
        max_length=room,
        split_special_tokens=True,
        return_token_type_ids=True,
    )
    ids, types = encoded["input_ids"], encoded["token_type_ids"]
    return {
        "query": query,
        "document": document,
        "maxTokens": room,
        "truncation": strategy,
        "ids": ids,
        "documentAt": types.index(1),
    }


if __name__ == "__main__":
    main()
