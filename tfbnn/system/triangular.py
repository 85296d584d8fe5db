"""Products with lower triangular matrices, which NumPy takes for full ones."""

import numpy as np

from tfbnn.system.arrays import Array, row_slices

# An inverse is halved down to so many rows; products have twice as many at a time.
_BLOCK = 64


def triangular_inverse(factor: Array) -> Array:
    """Return the inverse of a lower triangular matrix."""
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
    """Return a lower triangular matrix times others, without most of the products with zeros."""
    found = np.empty(columns.shape)
    for rows in row_slices(len(matrix), 2 * _BLOCK):
        np.matmul(matrix[rows, : rows.stop], columns[: rows.stop], out=found[rows])
    return found
