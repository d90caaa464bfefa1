"""The committed model folder and golden files, checked against their manifest and each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from toolfinch_training.bert_graph import INPUTS, OUTPUT
from toolfinch_training.model_folder import (
    MAX_TOKENS,
    MODEL_FILE,
    VOCABULARY_FILE,
    load_manifest,
    verify_model_folder,
)
from toolfinch_training.reference import EncoderSession, ReferenceTokenizer
from toolfinch_training.write_golden import ENCODER_FILE, WORDPIECE_FILE

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "models" / "toolfinch-retriever"
GOLDEN = ROOT / "test" / "golden"
SIZE_LIMIT = 24_000_000
# Another processor adds float32 products in another order; a rounding may then fall the other way.
LEAST_COSINE = 0.999


def rows(name: str) -> list[dict[str, Any]]:
    lines = (GOLDEN / name).read_text("ascii").splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def tokenizer() -> ReferenceTokenizer:
    return ReferenceTokenizer(FOLDER / VOCABULARY_FILE, MAX_TOKENS)


@pytest.fixture(scope="module")
def session() -> EncoderSession:
    return EncoderSession((FOLDER / MODEL_FILE).read_bytes())


@pytest.mark.parametrize("folder", sorted(FOLDER.parent.iterdir()), ids=lambda item: item.name)
def test_files_match_the_manifest(folder: Path) -> None:
    verify_model_folder(folder)
    card = (folder / "README.md").read_text("utf-8")
    assert load_manifest(folder)["files"][MODEL_FILE]["sha256"] in card


def test_a_changed_file_is_noticed(tmp_path: Path) -> None:
    for file in FOLDER.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    changed = tmp_path / VOCABULARY_FILE
    changed.write_bytes(changed.read_bytes() + b"\n")
    with pytest.raises(ValueError, match=VOCABULARY_FILE):
        verify_model_folder(tmp_path)


def test_manifest_describes_the_graph() -> None:
    manifest = load_manifest(FOLDER)
    graph = onnx.load(FOLDER / MODEL_FILE).graph
    assert manifest["model"]["inputs"] == [value.name for value in graph.input] == list(INPUTS)
    assert manifest["model"]["output"] == graph.output[0].name == OUTPUT
    assert graph.output[0].type.tensor_type.shape.dim[1].dim_value == manifest["dimension"]
    positions = next(value for value in graph.initializer if value.name == "positions")
    assert positions.dims[0] == manifest["maxTokens"]
    words = next(value for value in graph.initializer if value.name == "words")
    vocabulary = (FOLDER / manifest["tokenizer"]["vocab"]).read_text("utf-8").splitlines()
    assert len(vocabulary) == words.dims[0]
    assert {manifest["tokenizer"][key] for key in ("unknown", "start", "end", "pad")} <= {
        *vocabulary
    }


def test_size_and_licence_and_card() -> None:
    manifest = load_manifest(FOLDER)
    assert manifest["files"][MODEL_FILE]["bytes"] <= SIZE_LIMIT
    assert "Apache License" in (FOLDER / "LICENSE").read_text("utf-8")
    card = (FOLDER / "README.md").read_text("utf-8")
    assert manifest["files"][MODEL_FILE]["sha256"] in card
    assert manifest["base"]["weightsSha256"] in card


def test_wordpiece_golden_is_what_the_tokeniser_says(tokenizer: ReferenceTokenizer) -> None:
    golden = rows(WORDPIECE_FILE)
    assert len(golden) >= 1500
    wrong = [row["text"] for row in golden if tokenizer.ids(row["text"]) != row["ids"]]
    assert wrong == []
    assert max(len(row["ids"]) for row in golden) == MAX_TOKENS


def test_encoder_golden_is_what_the_model_says(
    tokenizer: ReferenceTokenizer, session: EncoderSession
) -> None:
    golden = rows(ENCODER_FILE)
    vectors = session.encode([tokenizer.ids(row["text"]) for row in golden]).astype(np.float64)
    expected = np.array([row["vector"] for row in golden])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert (vectors * expected).sum(axis=1).min() > LEAST_COSINE


def test_a_text_owes_nothing_to_its_batch(
    tokenizer: ReferenceTokenizer, session: EncoderSession
) -> None:
    ids = [tokenizer.ids(row["text"]) for row in rows(ENCODER_FILE)]
    assert load_manifest(FOLDER)["model"]["batchInvariant"]
    alone, together = session.encode(ids), session.batch(ids)
    np.testing.assert_allclose(together, alone, atol=1e-6)
