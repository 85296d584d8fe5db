"""The test kit for priors and noise of a user's own finds what is wrong with them."""

import pytest

from tests.support import own_classes as own
from tfbnn.likelihoods import check_noise
from tfbnn.priors import Normal, check_prior


@pytest.mark.parametrize("prior", [own.StudentTPrior(3.0, 0.7), own.Triangle(0.01)], ids=str)
def test_right_priors_pass(prior):
    check_prior(prior)


@pytest.mark.parametrize(
    "noise",
    [own.AsymmetricLaplace(2.0), own.Logistic(noise_scale=0.1), own.KnownLogistic()],
    ids=str,
)
def test_right_noise_passes(noise):
    check_noise(noise)


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        (own.Unnormalised(), r"normalisation: .* integral 1.10517\. Subtract 0.1 "),
        (own.WrongSampler(), "sample: shares of draws differ.*same scale"),
        (own.NoGradient(), "gradient: at 100 % of 500 points"),
        (own.GradientNotFinite(), "must have a finite .*Both branches of tf.where"),
        (own.Rounded(), "float32: log_prob is off"),
        (own.Flat(), r"Flat.sample must return the shape it is asked for, \(2, 3\)"),
        (own.OtherRandomness(), "the same for the same generator"),
        (own.Summed(), r"Summed.log_prob must return.*Compute elementwise"),
        (own.NotEven(), "is_even: log_prob differs"),
        (own.BeyondItsLimits(), "limits: log_prob must be minus infinity outside"),
        (own.NoDataclass(), "must be a frozen dataclass"),
        (Normal(1.0), "inherits from CustomPrior, received Normal"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_wrong_priors_are_told_what_is_wrong(prior, words):
    with pytest.raises((TypeError, ValueError), match=words):
        check_prior(prior)


@pytest.mark.parametrize(
    ("noise", "words"),
    [
        (own.NoiseUnnormalised(), "normalisation: .* integral 0.904837"),
        (own.WrongQuantile(), "quantile: it differs.*same width"),
        (own.FlatQuantile(), r"FlatQuantile.quantile must return the shape .* received \(199,\)"),
        (own.NoStandardDeviation(), "must have a standard deviation"),
        (own.WrongMoments(), r"moments: .* 1\.81.* received \(0.0, 1.0\)"),
        (own.NoExponentialMoments(), "has_exponential_moments: .*Leave it False"),
        (own.StudentTPrior(), "inherits from CustomNoise"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_wrong_noise_is_told_what_is_wrong(noise, words):
    with pytest.raises((TypeError, ValueError), match=words):
        check_noise(noise)


def test_a_quantile_that_descends_is_refused():
    class Descending(own.Logistic):
        def quantile(self, probability):
            return -super().quantile(probability)

    decorated = own.dataclass(frozen=True)(Descending)
    with pytest.raises(ValueError, match="Descending.quantile must ascend"):
        check_noise(decorated())


def test_a_sampler_off_by_two_percent_is_found():
    """The distribution function of a shift by .055 of Student's t is wrong by .02 at most."""

    class Shifted(own.StudentTPrior):
        is_even = False

        def sample(self, generator, shape):
            return super().sample(generator, shape) + 0.055

    with pytest.raises(ValueError, match="sample: "):
        check_prior(own.dataclass(frozen=True)(Shifted)())
