"""Log densities, their derivatives, and the coordinates they are sampled in."""
