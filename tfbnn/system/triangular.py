"""Products with lower triangular matrices, which NumPy takes for full ones."""

import numpy as np

from tfbnn.system.arrays import Array

# Matrices are halved down to so many rows.
_BLOCK = 64


def triangular_inverse(factor: Array) -> Array:
    """The inverse of a lower triangular matrix."""
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
    """A lower triangular matrix times others, without most of the products with zeros."""
    size = len(matrix)
    if size <= 2 * _BLOCK:
        return matrix @ columns
    half = size // 2
    found = np.empty(columns.shape)
    found[:half] = triangular_product(matrix[:half, :half], columns[:half])
    found[half:] = matrix[half:, :half] @ columns[:half]
    found[half:] += triangular_product(matrix[half:, half:], columns[half:])
    return found
