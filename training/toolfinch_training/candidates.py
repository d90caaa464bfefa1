"""The quantised forms of an encoder that are compared before one is chosen."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)

from toolfinch_training.base_model import BaseModel
from toolfinch_training.bert_graph import INPUTS, build_encoder
from toolfinch_training.linear_layers import (
    Float32Layers,
    LinearLayers,
    NBitsLayers,
    StoredInt8Layers,
    TokenwiseInt8Layers,
)

TensorFeed = dict[str, NDArray[np.int64]]

FLOAT32 = "float32"
CHOSEN = "tokenwise int8"


def feed_of(ids: Sequence[int]) -> TensorFeed:
    """The inputs for one text."""
    tokens = np.array([ids], np.int64)
    values = (tokens, np.ones_like(tokens), np.zeros_like(tokens))
    return dict(zip(INPUTS, values, strict=True))


def build_float32(
    base: BaseModel, max_tokens: int, *, int8_embeddings: bool = False
) -> onnx.ModelProto:
    """The encoder with float32 products."""
    return _build(base, Float32Layers(), max_tokens, int8_embeddings)


def build_chosen(
    base: BaseModel, max_tokens: int, calibration: Sequence[Sequence[int]]
) -> onnx.ModelProto:
    """The form that is shipped: int8 embeddings, int8 weights, activations quantised by token."""
    ranges = activation_ranges(build_float32(base, max_tokens), calibration)
    return _build(base, TokenwiseInt8Layers(ranges), max_tokens, True)


def build_candidates(
    base: BaseModel, max_tokens: int, calibration: Sequence[Sequence[int]]
) -> dict[str, onnx.ModelProto]:
    """Every form by its name in the card, float32 first."""
    float_products = build_float32(base, max_tokens, int8_embeddings=True)
    return {
        FLOAT32: build_float32(base, max_tokens),
        "float32, int8 embeddings": float_products,
        CHOSEN: build_chosen(base, max_tokens, calibration),
        "int8 on disk, float32 products, blocks of 32": _build(
            base, StoredInt8Layers(32), max_tokens, True
        ),
        "MatMulNBits 8 bits, blocks of 32": _build(base, NBitsLayers(32), max_tokens, True),
        "dynamic int8": _dynamic(float_products, reduce_range=False),
        "dynamic int8, 7-bit weights": _dynamic(float_products, reduce_range=True),
        "static int8": _static(float_products, calibration[::4]),
    }


def activation_ranges(
    model: onnx.ModelProto, calibration: Sequence[Sequence[int]]
) -> dict[str, NDArray[np.float32]]:
    """max|X_j| [K] of the input of every product in a float32 encoder, by the input's name."""
    probed = onnx.ModelProto()
    probed.CopyFrom(model)
    names = sorted({node.input[0] for node in model.graph.node if node.op_type == "MatMul"})
    for name in names:
        probed.graph.output.append(
            helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", "sequence", None])
        )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        probed.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    ranges: dict[str, NDArray[np.float32]] = {}
    for ids in calibration:
        for name, value in zip(names, session.run(names, feed_of(ids)), strict=True):
            peak = np.abs(value).max(axis=(0, 1))
            ranges[name] = np.maximum(ranges[name], peak) if name in ranges else peak
    return ranges


def _build(
    base: BaseModel, linear: LinearLayers, max_tokens: int, int8_embeddings: bool
) -> onnx.ModelProto:
    return build_encoder(
        base.shape, base.weights, linear, max_tokens=max_tokens, int8_embeddings=int8_embeddings
    )


def _dynamic(model: onnx.ModelProto, *, reduce_range: bool) -> onnx.ModelProto:
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "float32.onnx", Path(folder) / "dynamic.onnx"
        onnx.save(_with_types(model), source)
        quantize_dynamic(
            source,
            target,
            op_types_to_quantize=["MatMul"],
            per_channel=True,
            reduce_range=reduce_range,
            weight_type=QuantType.QInt8,
        )
        return onnx.load(target)


def _with_types(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the types of products written out, which inference cannot find by itself."""
    typed = onnx.ModelProto()
    typed.CopyFrom(model)
    products = [node for node in model.graph.node if node.op_type == "MatMul"]
    names = {name for node in products for name in (node.input[0], node.output[0])}
    typed.graph.value_info.extend(
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", "sequence", None])
        for name in sorted(names)
    )
    return typed


class _Calibration(CalibrationDataReader):  # type: ignore[misc]
    def __init__(self, texts: Sequence[Sequence[int]]) -> None:
        self._feeds = iter([feed_of(ids) for ids in texts])

    def get_next(self) -> TensorFeed | None:
        return next(self._feeds, None)


def _static(model: onnx.ModelProto, calibration: Sequence[Sequence[int]]) -> onnx.ModelProto:
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "float32.onnx", Path(folder) / "static.onnx"
        onnx.save(_with_types(model), source)
        quantize_static(
            source,
            target,
            _Calibration(calibration),
            quant_format=QuantFormat.QDQ,
            op_types_to_quantize=["MatMul"],
            per_channel=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
        )
        return onnx.load(target)
