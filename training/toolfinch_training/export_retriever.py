"""A trained retriever as a model folder: ONNX int8, parity with float32 measured, card and all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolfinch_training.base_model import sha256_of
from toolfinch_training.candidates import build_chosen
from toolfinch_training.export_encoder import check_graph, check_quantised
from toolfinch_training.measurement import batch_difference
from toolfinch_training.model_folder import (
    MAX_TOKENS,
    Kind,
    verify_model_folder,
    write_model_folder,
)
from toolfinch_training.reference import EncoderSession, ReferenceTokenizer
from toolfinch_training.tool_texts import long_texts, tool_texts
from toolfinch_training.torch_encoder import load_bert
from toolfinch_training.weights import (
    WEIGHTS,
    load_bert_folder,
    load_state,
    mixed,
    write_bert_folder,
)


@dataclass(frozen=True)
class Parity:
    """How close the int8 model comes to its float32 weights on texts of our own."""

    graph_difference: float
    least_cosine: float


def export_retriever(
    state_file: Path,
    share: float,
    work: Path,
    out: Path,
    *,
    name: str,
    training: Mapping[str, Any],
    relevance_floor: float | None = None,
) -> Parity:
    """Mix `share` of the trained weights with the base's, into `work`; the model goes to `out`."""
    write_bert_folder(work, mixed(load_bert().state_dict(), load_state(state_file), share))
    model = load_bert_folder(work)
    tokenizer = ReferenceTokenizer(model.vocabulary, MAX_TOKENS)
    texts = [tokenizer.ids(text) for text in (*tool_texts(), *long_texts())]
    calibration, checked = texts[::2], texts[1::16]
    difference = check_graph(model, checked)
    graph = build_chosen(model, MAX_TOKENS, calibration).SerializeToString(deterministic=True)
    session = EncoderSession(graph)
    least = check_quantised(model, session, checked)
    write_model_folder(
        out,
        model,
        graph,
        batch_invariant=batch_difference(session, texts[-80:]) == 0,
        kind=Kind(
            name=name,
            relevance_floor=relevance_floor,
            training={
                **training,
                "shareOfTrainedWeights": share,
                "weightsSha256": sha256_of(work / WEIGHTS),
            },
        ),
    )
    verify_model_folder(out)
    return Parity(difference, least)
