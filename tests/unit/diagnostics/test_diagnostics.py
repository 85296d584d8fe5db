"""Chain diagnostics: against ArviZ, known answers and the guards."""

import warnings

import numpy as np
import pytest

from tfbnn.diagnostics import statistics as diagnostics

STATISTICS = [
    getattr(diagnostics, name)
    for name in "rhat split_rhat bulk_ess tail_ess mcse_mean geyer_ess".split()
]


def ar1(coefficient, *, num_chains=4, num_draws=500, num_columns=3, seed=0):
    """Stationary chains x_s = coefficient * x_s-1 + noise with unit variance of x."""
    noise = np.random.default_rng(seed).normal(size=(num_chains, num_draws, num_columns))
    draws = noise.copy()
    for s in range(1, num_draws):
        draws[:, s] = coefficient * draws[:, s - 1] + np.sqrt(1 - coefficient**2) * noise[:, s]
    return draws


def arviz_number(name, column, **options):
    """One number of ArviZ for draws [C, S]."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(pytest.importorskip("arviz"), name)(column, **options)


SHAPES = {
    "normal": lambda draws: draws,
    "heavy tails": np.tan,
    # Coarser ties make a tail indicator constant, where ArviZ reports the number of draws.
    "ties": lambda draws: np.round(4 * draws) / 4,
    "separate": lambda draws: draws + 3.0 * np.arange(len(draws))[:, None, None],
    "scales": lambda draws: draws * (1.0 + np.arange(len(draws)))[:, None, None],
    "offset": lambda draws: 1e6 + draws,
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "coefficient, num_draws", [(0.0, 400), (0.9, 401), (-0.6, 100), (0.99, 50)]
)
def test_agrees_with_arviz(shape, coefficient, num_draws):
    draws = SHAPES[shape](ar1(coefficient, num_draws=num_draws))
    pairs = [
        (diagnostics.rhat, "rhat", {"method": "rank"}),
        (diagnostics.split_rhat, "rhat", {"method": "split"}),
        (diagnostics.bulk_ess, "ess", {"method": "bulk"}),
        (diagnostics.tail_ess, "ess", {"method": "tail", "prob": (0.05, 0.95)}),
        (diagnostics.mcse_mean, "mcse", {"method": "mean"}),
    ]
    for function, name, options in pairs:
        ours = function(draws)
        theirs = [float(arviz_number(name, draws[..., k], **options)) for k in range(3)]
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, err_msg=f"{name} {options}")


def test_ebfmi_agrees_with_arviz():
    energy = ar1(0.9)[..., 0]
    np.testing.assert_allclose(diagnostics.ebfmi(energy), arviz_number("bfmi", energy), rtol=1e-9)


@pytest.mark.parametrize("coefficient", [0.0, 0.5, 0.9, -0.5])
def test_ess_of_ar1_is_the_analytic_one(coefficient):
    draws = ar1(coefficient, num_draws=4000, num_columns=10)
    per_draw = (1 - coefficient) / (1 + coefficient)
    assert np.mean(diagnostics.geyer_ess(draws)) == pytest.approx(4000 * per_draw, rel=0.1)
    # Rank normalisation of normal draws changes nothing but noise.
    assert np.mean(diagnostics.bulk_ess(draws)) == pytest.approx(16000 * per_draw, rel=0.1)
    error = np.mean(diagnostics.mcse_mean(draws))
    assert error == pytest.approx(1 / np.sqrt(16000 * per_draw), rel=0.1)


def test_standing_chains_at_different_places():
    draws = np.repeat([[0.1], [0.2], [0.7]], 50, axis=1)
    assert diagnostics.rhat(draws) == np.inf
    assert diagnostics.split_rhat(draws) == np.inf
    assert diagnostics.bulk_ess(draws) < 4
    assert np.isnan(diagnostics.geyer_ess(draws))


@pytest.mark.parametrize("function", STATISTICS)
def test_undefined_quantities_are_nan_and_spare_the_others(function):
    draws = ar1(0.5, num_draws=40, num_columns=5)
    expected = function(draws[..., 4])
    draws[..., 0] = 0.1
    draws[1, 3, 1] = np.nan
    draws[2, 5, 2] = np.inf
    draws[..., 3] = -np.inf
    result = function(draws)
    assert np.all(np.isnan(result[:4]))
    assert result[4] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("function", STATISTICS)
def test_too_few_draws_are_undefined(function):
    assert np.all(np.isnan(function(ar1(0.5, num_draws=3))))
    assert function(np.zeros((4, 0, 2))).shape == (2,)
    assert function(np.zeros((0, 10, 2))).shape == (2,)
    assert function(np.zeros((4, 10, 0, 2))).shape == (0, 2)
    with pytest.raises(ValueError, match=r"draws must have shape \[C, S, ...\]"):
        function(np.zeros(10))


@pytest.mark.parametrize("num_draws", range(4, 14))
def test_few_draws_and_extreme_magnitudes_are_handled(num_draws):
    draws = ar1(0.5, num_draws=num_draws, num_columns=1)
    scales = 2.0 ** np.array([0, -900, 600, 1020])
    for function in STATISTICS:
        results = function(draws * scales)
        if function is diagnostics.mcse_mean:
            results = results / scales
        np.testing.assert_allclose(results, np.broadcast_to(results[0], 4), rtol=1e-12)


def test_per_chain_numbers_spare_the_good_chains():
    draws = ar1(0.5, num_draws=40)
    draws[0], draws[1, 7] = 3.3, np.nan
    energies = diagnostics.ebfmi(draws[..., 0])
    assert np.all(np.isnan(energies[:2])) and np.all(np.isfinite(energies[2:]))


def test_tail_left_out_where_draws_sit_at_a_bound():
    draws = np.minimum(ar1(0.3), 0.5)  # the 95 % quantile is the maximum
    assert np.all(diagnostics.tail_ess(draws) > 100)


@pytest.mark.parametrize("function", STATISTICS)
def test_blocks_types_and_trailing_shapes_do_not_change_results(function, monkeypatch):
    draws = ar1(0.5, num_draws=30, num_columns=12)
    whole = function(draws)
    monkeypatch.setattr(diagnostics, "_BLOCK_VALUES", 4 * 30 * 5)
    np.testing.assert_allclose(function(draws), whole, rtol=1e-12)
    shaped = function(draws.reshape(4, 30, 3, 2, 2))
    assert shaped.shape == (*whole.shape[:-1], 3, 2, 2)
    np.testing.assert_allclose(shaped.reshape(whole.shape), whole, rtol=1e-12)
    single = draws.astype(np.float32)
    np.testing.assert_allclose(function(single), function(single.astype(float)), rtol=1e-12)


def nested(draws, superchains):
    """Definition 2 of Margossian et al. 2022, of one quantity [C, S]."""
    members = [draws[superchains == one] for one in np.unique(superchains)]
    means = [one.mean() for one in members]
    within = []
    for one in members:
        of_means = one.mean(axis=1).var(ddof=1) if len(one) > 1 else 0.0
        within.append(of_means + one.var(axis=1, ddof=1).mean())
    return np.sqrt(1.0 + np.var(means, ddof=1) / np.mean(within))


@pytest.mark.parametrize("superchains", [[0, 1, 0, 1, 0, 1], [0, 0, 0, 0, 7, 3]])
def test_nested_rhat_compares_superchains(superchains):
    superchains = np.array(superchains)
    draws = ar1(0.5, num_chains=6, num_columns=1) + 0.5 * (superchains == 0)[:, None, None]
    scores = diagnostics.normal_scores(draws[..., 0][None])[0]
    found = diagnostics.rhat(draws, superchains)
    np.testing.assert_allclose(found, nested(scores, superchains))
    assert found > diagnostics.rhat(draws)


def test_chains_that_share_a_start_are_no_independent_witnesses():
    superchains = np.repeat([0, 1], 16)
    draws = ar1(0.0, num_chains=32, num_columns=1) + 0.25 * superchains[:, None, None]
    plain, found = diagnostics.rhat(draws), diagnostics.rhat(draws, superchains)
    # The means of 2 superchains vary about twice as much as those of 32 chains.
    assert found - 1.0 == pytest.approx(2.0 * (plain - 1.0), rel=0.15)
    same = np.zeros(32, int)
    np.testing.assert_array_equal(diagnostics.rhat(draws, same), plain)
