"""Number formats for weights: symmetric 8-bit, by row or by block."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MAXIMUM = 127.0
MAXIMUM_PAIR = 128


def quantise_rows(table: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Symmetric int8 with one scale a row: table ~ int8 [rows, columns] * scale [rows]."""
    scales = (np.abs(table).max(axis=1) / MAXIMUM).astype(np.float32)
    divisor = np.where(scales == 0, np.float32(1), scales)
    return np.rint(table / divisor[:, None]).astype(np.int8), scales


def quantise_rows_for_pairs(
    weight: NDArray[np.float32],
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Symmetric int8 by row, safe for x86 processors without VNNI.

    There, the instruction that multiplies uint8 activations by int8 weights adds neighbouring
    products in a saturating int16. Keeping |w_2i + w_2i+1| at or below 128 keeps every such sum,
    at most 255 * 128, inside it, at a fraction of the loss of 7-bit weights.
    """
    pairs = np.abs(weight.reshape(weight.shape[0], -1, 2).sum(axis=2)).max(axis=1)
    peaks = np.abs(weight).max(axis=1)
    scales = (np.maximum(peaks, pairs) / MAXIMUM).astype(np.float32)
    divisor = np.where(scales == 0, np.float32(1), scales)
    quantised = np.rint(weight / divisor[:, None]).astype(np.int8)
    sums = quantised.reshape(weight.shape[0], -1, 2).sum(axis=2, dtype=np.int32)
    if np.abs(sums).max(initial=0) > MAXIMUM_PAIR:
        raise AssertionError("a pair of weights would saturate")
    return quantised, scales


def quantise_blocks(
    weight: NDArray[np.float32], block_size: int
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Symmetric int8 in blocks along the columns of `weight` [N, K].

    Returns int8 [N, K / block_size, block_size] and float32 [N, K / block_size, 1].
    """
    rows, columns = weight.shape
    if columns % block_size != 0:
        raise ValueError(f"{columns} columns are not whole blocks of {block_size}")
    quantised, scales = quantise_rows(weight.reshape(-1, block_size))
    blocks = columns // block_size
    return quantised.reshape(rows, blocks, block_size), scales.reshape(rows, blocks, 1)


def smoothing(
    activation: NDArray[np.float32], weight: NDArray[np.float32], strength: float
) -> NDArray[np.float32]:
    """Factors by which to divide each input channel and multiply its weights.

    SmoothQuant (Xiao et al. 2023, arXiv:2211.10438, equation 4):
    s_j = max|X_j|^strength / max|W_j|^(1 - strength), here scaled to a geometric mean of 1 and
    rounded to quarter octaves, so that the last bits of a calibration run do not reach the file.
    `activation` [K] holds max|X_j|, `weight` is [N, K].
    """
    floor = 1e-5
    weight_range = np.maximum(np.abs(weight).max(axis=0), floor)
    octaves = strength * np.log2(np.maximum(activation, floor))
    octaves -= (1.0 - strength) * np.log2(weight_range)
    octaves -= octaves.mean()
    return np.exp2(np.rint(octaves * 4.0) / 4.0).astype(np.float32)
