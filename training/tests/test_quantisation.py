"""The number formats, against their definition."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from toolfinch_training.quantisation import (
    quantise_blocks,
    quantise_rows,
    quantise_rows_for_pairs,
    smoothing,
)
from toolfinch_training.test_sets import mean_ndcg


@pytest.fixture(params=[0, 1, 2])
def weight(request: pytest.FixtureRequest) -> NDArray[np.float32]:
    source = np.random.default_rng(request.param)
    values = source.standard_t(3, size=(48, 64)) * source.uniform(1e-3, 10, size=(48, 1))
    values[0] = 0
    values[1] = 1
    values[2] = -1
    return values.astype(np.float32)


def test_rows_are_within_half_a_step(weight: NDArray[np.float32]) -> None:
    quantised, scales = quantise_rows(weight)
    error = np.abs(quantised * scales[:, None].astype(np.float64) - weight)
    assert (error <= scales[:, None] * 0.501).all()


def test_pairs_never_saturate_and_are_within_half_a_step(weight: NDArray[np.float32]) -> None:
    quantised, scales = quantise_rows_for_pairs(weight)
    error = np.abs(quantised * scales[:, None].astype(np.float64) - weight)
    assert (error <= scales[:, None] * 0.501).all()
    pairs = quantised.astype(np.int64).reshape(len(weight), -1, 2)
    for left in (0, 255):
        for right in (0, 255):
            total = pairs[..., 0] * left + pairs[..., 1] * right
            assert total.min() >= -32768
            assert total.max() <= 32767


def test_blocks_are_rows_of_the_blocks(weight: NDArray[np.float32]) -> None:
    quantised, scales = quantise_blocks(weight, 16)
    restored = (quantised * scales.astype(np.float64)).reshape(weight.shape)
    limit = np.repeat(scales[..., 0], 16, axis=1) * 0.501
    assert (np.abs(restored - weight) <= limit).all()
    with pytest.raises(ValueError, match="blocks of 48"):
        quantise_blocks(weight, 48)


def test_smoothing_keeps_the_product(weight: NDArray[np.float32]) -> None:
    source = np.random.default_rng(9)
    value = source.normal(size=(5, 64)).astype(np.float32)
    factors = smoothing(np.abs(value).max(axis=0), weight, 0.5)
    np.testing.assert_allclose(
        (value / factors) @ (weight * factors).T, value @ weight.T, rtol=1e-4, atol=1e-4
    )
    assert np.allclose(np.log2(factors) * 4, np.rint(np.log2(factors) * 4), atol=1e-4)


def test_ndcg_by_hand() -> None:
    tools = np.eye(12, dtype=np.float32)
    queries = np.arange(12, 0, -1, dtype=np.float32)[None]
    assert mean_ndcg(tools, queries, [{0}]) == 1
    assert mean_ndcg(tools, queries, [{1}]) == pytest.approx(1 / np.log2(3))
    assert mean_ndcg(tools, queries, [{0, 11}]) == pytest.approx(1 / (1 + 1 / np.log2(3)))
    assert mean_ndcg(tools, queries, [{10, 11}]) == 0
