"""Build models/all-minilm-l6-v2: export, quantise, verify and, given data, measure.

python -m toolfinch_training.export_encoder --out models/all-minilm-l6-v2 [--data FOLDER]
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

import numpy as np

from toolfinch_training.base_model import BaseModel, load_base_model
from toolfinch_training.candidates import (
    FLOAT32,
    build_candidates,
    build_chosen,
    build_float32,
)
from toolfinch_training.card import write_card
from toolfinch_training.dataset import load_retrieval_set, sample_texts
from toolfinch_training.measurement import (
    Ids,
    Measurement,
    batch_difference,
    encode_set,
    latencies,
    measure,
)
from toolfinch_training.model_folder import (
    MAX_TOKENS,
    verify_model_folder,
    write_model_folder,
)
from toolfinch_training.reference import EncoderSession, ReferenceTokenizer, TorchEncoder
from toolfinch_training.tool_texts import long_texts, tool_texts

SETS = ("metatool", "bfcl")
QUERIES = 1000
TEXTS = 2000
SEED = 7
GRAPH_TOLERANCE = 1e-5
LEAST_COSINE = 0.995


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="model folder to write")
    parser.add_argument("--data", type=Path, help="labelled data; measures and writes the card")
    arguments = parser.parse_args()
    out: Path = arguments.out
    data: Path | None = arguments.data

    base = load_base_model()
    tokenizer = ReferenceTokenizer(base.vocabulary, MAX_TOKENS)
    own_texts = [tokenizer.ids(text) for text in (*tool_texts(), *long_texts())]
    calibration, checked = own_texts[::2], own_texts[1::16]

    check_graph(base, checked)
    model = build_chosen(base, MAX_TOKENS, calibration).SerializeToString(deterministic=True)
    session = EncoderSession(model)
    check_quantised(base, session, checked)
    write_model_folder(
        out, base, model, batch_invariant=batch_difference(session, own_texts[-80:]) == 0
    )
    verify_model_folder(out)
    print(f"wrote {out}: {len(model)} bytes")
    if data is not None:
        models = {
            name: candidate.SerializeToString(deterministic=True)
            for name, candidate in build_candidates(base, MAX_TOKENS, calibration).items()
        }
        write_card(
            out,
            measure_all(models, tokenizer, data),
            latencies(models),
            texts=TEXTS,
            queries=QUERIES,
            processor=processor_name(),
            runtime=version("onnxruntime"),
        )


def check_graph(base: BaseModel, texts: Ids) -> float:
    """The hand-written float32 graph must agree with PyTorch; returns the largest difference."""
    model = build_float32(base, MAX_TOKENS).SerializeToString()
    expected = TorchEncoder(base.folder).encode(texts)
    difference = float(np.abs(EncoderSession(model).encode(texts) - expected).max())
    print(f"float32 graph against PyTorch: largest difference {difference:.1e}")
    if not difference < GRAPH_TOLERANCE:
        raise SystemExit("the graph does not compute the base model")
    return difference


def check_quantised(base: BaseModel, session: EncoderSession, texts: Ids) -> float:
    """Every vector must stay close to float32; returns the least cosine."""
    exact = EncoderSession(build_float32(base, MAX_TOKENS).SerializeToString()).encode(texts)
    least = float((session.encode(texts) * exact).sum(axis=1).min())
    print(f"quantised against float32: least cosine {least:.5f}")
    if not least > LEAST_COSINE:
        raise SystemExit("quantisation lost too much")
    return least


def measure_all(
    models: Mapping[str, bytes], tokenizer: ReferenceTokenizer, data: Path
) -> list[Measurement]:
    """Measure the loss of every form on real texts."""
    texts = [tokenizer.ids(text) for text in sample_texts(data, count=TEXTS, seed=SEED)]
    sets = [
        encode_set(load_retrieval_set(data / name, queries=QUERIES, seed=SEED), tokenizer.ids)
        for name in SETS
    ]
    reference = EncoderSession(models[FLOAT32]).encode(texts)
    measurements = []
    for name, model in models.items():
        measurements.append(measure(name, model, texts, reference, sets))
        print(measurements[-1], flush=True)
    return measurements


def processor_name() -> str:
    """The processor, as the system describes it."""
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


if __name__ == "__main__":
    main()
