"""The methods of a model that users of Keras look for; what it has otherwise, their error says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from tfbnn.posterior.sampled_model import SampledModel
from tfbnn.spec.habits import ExplainsAttributes
from tfbnn.spec.model_spec import config_of, perceptron, spec_of_config


class KerasHabits(ExplainsAttributes, SampledModel):
    """What a model says of itself in Keras' words."""

    def count_params(self) -> int:
        """The number of parameters P that are sampled: weights, and scales of noise and priors.

        So many entries has a draw, `model.posterior.draws` [C, S, P]; `summary` gives both numbers.
        """
        return self.spec.layout.num_parameters

    def get_config(self) -> dict[str, Any]:
        """The arguments of this model as a JSON-able dict, for `from_config`; nothing of its fit.

        What was "auto" still is, so that a copy chooses by its own rows. Of a loaded model they
        are what its fit came to: a file knows no other.
        """
        return config_of(perceptron(self._asked, "get_config"))

    @classmethod
    def from_config(cls, config: dict[str, Any], custom: Sequence[type] = ()) -> Self:
        """The model, not fitted yet, that `get_config` describes.

        Args:
            config: All entries that `get_config` gives. Priors and likelihoods are found by the
                names of their classes.
            custom: Classes of your own that the model may have, as in `tfbnn.load`.

        Raises:
            TypeError, ValueError: For anything else.

        Example:
            copy = tfbnn.BayesianMLP.from_config(model.get_config())
        """
        return cls.from_spec(spec_of_config(config, custom))
