"""Trust levels of `predict(return_trust=True)`: INSIDE, EDGE or OUTSIDE the training inputs."""

from tfbnn.data.training_inputs import EDGE, INSIDE, OUTSIDE, trust_levels

__all__ = ["EDGE", "INSIDE", "OUTSIDE", "trust_levels"]
