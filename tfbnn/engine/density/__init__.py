"""Log densities, their derivatives, and the coordinates in which they are sampled."""
