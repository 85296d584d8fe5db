"""Inverses and products of lower triangular matrices, which NumPy treats as full matrices."""

import numpy as np

from tfbnn.system.arrays import Array, row_slices

# Inverses are split in halves down to this number of rows; products take twice as many at a time.
_BLOCK = 64


def triangular_inverse(factor: Array) -> Array:
    """Compute the inverse of a lower triangular matrix."""
    size = len(factor)
    if size <= _BLOCK:
        return np.tril(np.linalg.inv(factor))
    half = size // 2
    found = np.zeros_like(factor)
    found[:half, :half] = triangular_inverse(factor[:half, :half])
    found[half:, half:] = triangular_inverse(factor[half:, half:])
    found[half:, :half] = -found[half:, half:] @ (factor[half:, :half] @ found[:half, :half])
    return found


def triangular_product(matrix: Array, columns: Array) -> Array:
    """Multiply a lower triangular matrix by `columns`, omitting most products with zeros."""
    found = np.empty(columns.shape)
    for rows in row_slices(len(matrix), 2 * _BLOCK):
        np.matmul(matrix[rows, : rows.stop], columns[: rows.stop], out=found[rows])
    return found
