"""`BayesianModel`: samples the weights of any Keras 3 model with one input and one output tensor."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Self

from tfbnn.data.validation import check_integer
from tfbnn.fit.model import SampledNetwork
from tfbnn.spec.habits import explains_keywords
from tfbnn.spec.keras_spec import KerasSpec
from tfbnn.spec.likelihoods import Gaussian, Likelihood
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.open_spec import OpenSpec

__all__ = ["BayesianModel"]


class BayesianModel(SampledNetwork):
    """A Keras model whose weights are sampled by Markov chain Monte Carlo.

    It has all methods of `BayesianMLP`: `fit_posterior`, `predict`, `evaluate`, `calibrate`, `save` and
    the others. The Keras model is read once and not changed. Its config and the values of the weights
    that are not sampled are stored with the draws. A plain stack of Dense layers becomes a perceptron,
    with its speed, its exports and files that load without TensorFlow.

    Dropout and noise layers are switched off, and state such as moving statistics keeps its values. The
    report of a fit states this. The prior replaces regularizers. Weights that are not trainable keep their
    values, so that a part of a network can be sampled (`layer.trainable = False`). Scales and shifts of
    normalisation layers keep their values too, unless `prior` includes them. Frozen weights are stored as
    text in files and run folders, up to 64 MiB: about twelve million float32 numbers.

    A last Dense layer without activation and with a bias is detected, whatever the layers before it, and
    `kernels.Repriorised` can then be used. Levenberg-Marquardt and whitened coordinates are available if
    TensorFlow can take derivatives of all rows at once. This is not possible for recurrent layers; ADAM
    and a diagonal preconditioner are used instead.

    Args:
        keras_model: A built Keras 3 model on the TensorFlow backend, in float32 or float64, with one
            input and one output tensor [N, K]. The likelihood has to accept its outputs: logits for
            classes, without softmax or sigmoid.
        prior: A prior from `tfbnn.priors` for all trainable weights except those of normalisation, or a
            dict of patterns to priors or "fixed". The pattern `"*/kernel"` matches paths of variables,
            "Conv2D" layers of a type with all layers inside them, "bias" all variables of that name. The
            first pattern that matches a variable is used; other variables have the default. "auto"
            (default): HierarchicalNormal(HalfNormal(1.0)) for every kernel and bias, HalfNormal(3.0) for
            classes; for a plain stack the default of `BayesianMLP`.
        likelihood: From `tfbnn.likelihoods`. Default Gaussian("learned").
        parameterization: "standard", or "ntk": a kernel is multiplied by its prior scale over the
            square root of the number of terms that a unit adds up with it, all other weights by their
            prior scales, so that one prior suits every width. "auto" (default): "ntk" with the prior
            "auto", "standard" with a given prior.
        x_transform: None, a name or a list of names out of "log10" and "standardize". "auto" (default):
            "standardize" for rows of numbers; None for images, sequences, inputs of embeddings, and models
            with a `Normalization` layer.
        y_transform: As in `BayesianMLP`.
        dtype: "float32" (default) or "float64" for the sampling; the model may be built in either.
        input_shape: Shape of one row of inputs, for a subclassed model that does not define it.

    Raises:
        ImportError: When Keras is not installed.
        TypeError, ValueError: For a model of tf_keras; for a model that is not built, has several inputs
            or outputs, nothing to sample, constraints on sampled weights, layers that are random outside
            training or mix rows, or a last operation with bounds, such as sigmoid, when targets are
            transformed; and for settings that do not describe a model.

    References:
        Sharma, Farquhar, Nalisnick and Rainforth 2023, arXiv:2211.06291, on sampling a part of the
        weights. Hron, Novak, Pennington and Sohl-Dickstein 2022, arXiv:2206.07673, on readouts.

    Example:
        network = keras.Sequential([keras.Input((8, 8, 1)), keras.layers.Conv2D(8, 3),
                                    keras.layers.Flatten(), keras.layers.Dense(10)])
        model = tfbnn.BayesianModel(network, likelihood=tfbnn.likelihoods.Categorical())
        print(model.fit_posterior(images, labels).report())
    """

    @explains_keywords
    def __init__(
        self,
        keras_model: Any,
        *,
        prior: Any = "auto",
        likelihood: Likelihood = Gaussian("learned"),
        parameterization: str = "auto",
        x_transform: str | Sequence[str] | None = "auto",
        y_transform: str | Sequence[str] | None = "auto",
        dtype: Any = "float32",
        input_shape: Sequence[int] | None = None,
    ) -> None:
        from tfbnn.engine.keras.spec_of_model import spec_of_keras_model

        settings = {
            "likelihood": likelihood,
            "parameterization": parameterization,
            "x_transform": x_transform,
            "y_transform": y_transform,
            "dtype": dtype,
            "input_shape": input_shape,
        }
        super().__init__(partial(spec_of_keras_model, keras_model), prior, settings)

    @classmethod
    def from_spec(cls, spec: NetworkSpec | OpenSpec) -> Self:
        """Return the unfitted model that a spec describes.

        Keras builds the network at once, so that errors are raised here.
        """
        if isinstance(spec, KerasSpec):
            from tfbnn.engine.export.tensorflow_forward import check_keras_forward
            from tfbnn.engine.keras.keras_network import network_of
            from tfbnn.engine.keras.trial import check_words

            check_words(network_of(spec, spec.dtype), spec.facts.num_words)
            check_keras_forward(spec)
        return super().from_spec(spec)

    def to_keras(self, draw: int = 0) -> Any:
        """Return one of the sampled networks as a new Keras model.

        Its inputs and outputs are on the scale the network sees: after the input transform, and before the
        target transform is inverted. `to_keras(k).export(path, format="onnx")` writes it for other programs.

        Args:
            draw: Index of the draw, chain by chain, 0 to C * S - 1; default 0.

        Returns:
            A Keras model in the dtype of this one.

        Raises:
            NotFittedError: Before a fit.
            ValueError: For an index out of range, and for a plain stack, which has exports of its own.
        """
        ensemble = self._fitted("to_keras")
        spec = self.spec
        if not isinstance(spec, KerasSpec):
            raise ValueError(
                "to_keras is for layers that only Keras has, received a plain stack of Dense layers. Use "
                "to_onnx or to_savedmodel, which hold all draws and the transforms."
            )
        draw = check_integer("draw", draw, minimum=0)
        if draw >= ensemble.num_draws:
            raise ValueError(f"draw must be below {ensemble.num_draws}, received {draw}.")
        from tfbnn.engine.density.network import model_of_draw

        return model_of_draw(spec, ensemble.draws.reshape(ensemble.num_draws, -1)[draw])
