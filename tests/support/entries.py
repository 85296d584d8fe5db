"""Every public entry point that takes rows, on rows that are good, and an engine that only looks on."""

import numpy as np
import pytest

NUM_ROWS = 12
# Eighths are exact in float16, the narrowest of the disguises below.
X = np.round(np.random.default_rng(0).normal(size=(NUM_ROWS, 2)) * 16) / 8 + [0.0, 1.0]
Y = np.round(np.random.default_rng(1).uniform(0.5, 4.0, size=(NUM_ROWS, 1)) * 8) / 8
NOISE = np.full(NUM_ROWS, 0.25)
THETA = np.linspace(-1.0, 1.0, 22)


class FakeEngine:
    """Stands for pretraining and sampling: records what reaches them and returns random draws."""

    def __init__(self):
        self.calls = []
        self.num_kept = None  # how many draws are there when the run ends; None: all
        self.interrupted = False

    def pretrain(self, *args, **kwargs):
        self.calls.append(("pretrain", args, kwargs))
        raise AssertionError("pretraining was reached")

    def run_chains(self, config, settings, data, starts, *args):
        from tfbnn.run.counters import Seconds
        from tfbnn.run.result import Result

        self.calls.append(("run_chains", (config, settings, data), args))
        kept = config.sampling.num_results if self.num_kept is None else self.num_kept
        theta = starts.theta
        shape, chains = (len(theta), kept), np.zeros(len(theta))
        noise = np.random.default_rng(0).normal(size=(*shape, theta.shape[1]))
        names = ("lp", "acceptance_rate", "step_size", "energy")
        return Result(
            draws=(theta[:, None] + 0.1 * noise).astype(theta.dtype),
            sample_stats={name: noise[..., 0].copy() for name in names}
            | {"n_steps": np.ones(shape, int), "diverging": np.zeros(shape, bool)},
            acceptance_rate=chains,
            num_divergent=chains,
            num_sampled=np.full(len(theta), kept * config.sampling.stride),
            num_gradients={"warmup": chains, "sampling": chains},
            step_size=chains,
            start_log_prob=chains,
            seconds=Seconds(),
            interrupted=self.interrupted,
        )

    @property
    def data(self):
        """The tensors of the last run, as NumPy arrays."""
        return self.calls[-1][1][2]


def fake_fit(model, x=X, y=Y, **settings):
    """A fit that the fake engine answers."""
    settings = {"pretraining": None, "num_chains": 2, "num_results": 6, "verbose": 0} | settings
    return model.fit_posterior(x, y, **settings)


def fit(model, x=X, y=Y, noise=None):
    return model.fit_posterior(x, y, noise_scale=noise)


def validate(model, x=X, y=Y, noise=None):
    return model.fit_posterior(X, Y, validation_data=(x, y, noise))


def predict(model, x=X, y=Y, noise=None):
    return model.predict(x, include_noise=True, quantiles=[0.1, 0.9], noise_scale=noise)


def predict_draws(model, x=X, y=Y, noise=None):
    return model.predict_draws(x)


def evaluate(model, x=X, y=Y, noise=None):
    return model.evaluate(x, y, noise_scale=noise)


def log_prob(model, x=X, y=Y, noise=None):
    return model.log_prob(THETA, x, y, noise_scale=noise)


def diagnose(model, x=X, y=Y, noise=None):
    return model.diagnose(x)


def stack(model, x=X, y=Y, noise=None):
    return model.stack_chains(x, y, noise_scale=noise)


TAKE_X = [fit, validate, predict, predict_draws, evaluate, log_prob, diagnose, stack]
TAKE_Y = [fit, validate, evaluate, log_prob, stack]
TAKE_NOISE = [fit, validate, predict, evaluate, log_prob, stack]


def name_of(function):
    return function.__name__


def refuses(call, model, engine, error, words):
    """Checks that `call` raises `error` with these words, early, and leaves the model alone."""
    before = model.posterior
    with pytest.raises(error) as caught:
        call()
    message = str(caught.value)
    for word in words:
        assert word in message
    assert message.count("\n") < 3
    assert not any("tensorflow" in str(entry.path) for entry in caught.traceback)
    assert engine.calls == []
    assert model.posterior is before


def with_cell(value, rows=X):
    changed = rows.copy()
    changed[3, -1] = value
    return changed


def objects(value, rows=X):
    """An object array of numbers with one entry replaced."""
    changed = rows.astype(object)
    changed[3, -1] = value
    return changed


def ragged():
    return [[1.0, 2.0], [3.0]] * (NUM_ROWS // 2)


def read_only(values):
    copy = values.copy()
    copy.setflags(write=False)
    return copy
