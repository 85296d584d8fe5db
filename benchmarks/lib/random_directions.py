"""Random directions, on which draws of very many weights are projected.

Reference: Hron, Novak, Pennington and Sohl-Dickstein 2022, arXiv:2206.07673.
"""

import numpy as np

__all__ = ["random_directions"]


def random_directions(size, num_projections=100, seed=0):
    """Unit vectors [size, num_projections] of uniform direction, float32."""
    generator = np.random.default_rng(seed)
    directions = generator.standard_normal((size, num_projections), dtype=np.float32)
    return directions / np.linalg.norm(directions, axis=0)
