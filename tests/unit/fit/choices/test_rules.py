"""The rules of what is "auto": they see sizes and noise, and say what decided."""

from dataclasses import replace

import numpy as np
import pytest

from tfbnn.engine.kernels.hmc import HMC
from tfbnn.engine.kernels.nuts import NUTS
from tfbnn.fit.choices import rules
from tfbnn.fit.choices.rules import FitSizes


def sizes(num_rows, num_inputs, num_targets, hidden=50):
    weights = (num_inputs + 1) * hidden + (hidden + 1) * num_targets
    return FitSizes(num_rows, weights)


def pilot(*noise):
    return np.array(noise)


# Contrasting tables: (Sizes, noise of a pilot).
TABLES = {
    "few parameters": (sizes(100, 1, 1, hidden=5), pilot(0.3)),
    "small and noisy": (sizes(455, 13, 1), pilot(0.6)),
    "small, without noise": (sizes(455, 13, 1), pilot(0.001)),
    "a noisy target besides": (sizes(455, 13, 2), pilot(0.001, 0.6)),
    "many rows": (sizes(50_000, 13, 1), pilot(0.6)),
    "many rows, little noise": (sizes(12_000, 5, 1), pilot(0.2)),
    "many targets": (sizes(4_000, 13, 20), pilot(*[0.01] * 20)),
    "classes": (sizes(455, 13, 3), None),
}


def chosen(name):
    """(Kernel, warm-up, pretraining) of a table."""
    table = TABLES[name]
    kernel, _ = rules.kernel(*table)
    warmup, _ = rules.num_burnin_steps(table[0], kernel.gradients_per_transition)
    return kernel, warmup, rules.pretraining(*table)[0]


def test_infinite_width_has_no_particles():
    settings, why = rules.pretraining(FitSizes(200, 6, is_infinite=True), pilot(0.01))
    assert settings.num_particles is None and "maximum of the evidence" in why


def test_the_choice_changes_with_rows_parameters_targets_and_noise():
    kernels = {name: chosen(name)[0] for name in TABLES}
    assert isinstance(kernels["few parameters"], NUTS)
    hmc = [name for name, kernel in kernels.items() if isinstance(kernel, HMC)]
    lengths = {name: kernels[name].num_leapfrog_steps for name in hmc}
    assert lengths["small and noisy"] == lengths["classes"] == 64
    assert lengths["small, without noise"] == 256
    # Much noise on numbers leaves corners far steeper than the middle.
    careful = [name for name, kernel in kernels.items() if kernel.target_accept_prob == 0.9]
    assert careful == ["small and noisy", "a noisy target besides"]
    # By N, and by K, which P grows with.
    assert lengths["many rows"] == lengths["many targets"] == 32
    assert chosen("many rows")[1] < chosen("small and noisy")[1]
    searches = {name: chosen(name)[2] for name in TABLES}
    polish = {name: search.newton_iterations for name, search in searches.items()}
    assert polish["small, without noise"] == polish["classes"] == "auto"
    # The noisiest of the targets decides.
    assert polish["small and noisy"] == polish["a noisy target besides"] == 0
    assert searches["many rows"].batch_size > searches["small and noisy"].batch_size
    # Rows are held out to judge starts, but where there are so many that no weight follows one.
    unjudged = {name for name in TABLES if not searches[name].validation_split}
    assert unjudged == {name for name in TABLES if not searches[name].early_stopping}
    assert unjudged == {"many rows", "many rows, little noise"}
    # ADAM goes on to its end where nothing follows it.
    num_steps = searches["many rows"].epochs * 50_000 / searches["many rows"].batch_size
    schedules = [name for name in TABLES if searches[name].learning_rate_schedule == "cosine"]
    assert num_steps == pytest.approx(8 * 12_000, rel=0.05) and schedules == ["many rows"]
    # There chains are whitened, and where there is no noise to cross on, more starts are tried.
    whitened = [name for name, kernel in kernels.items() if kernel.preconditioner == "auto"]
    assert whitened == ["few parameters", "many rows, little noise"]
    with_more = [name for name in TABLES if searches[name].num_starts]
    assert with_more == ["small, without noise", "many rows, little noise", "many targets"]


@pytest.mark.parametrize("name", sorted(TABLES))
def test_less_effort_is_less_of_all_but_the_kernel(name):
    whole, pilot_of_it = TABLES[name]
    quarter = whole._replace(effort=0.25)
    assert rules.kernel(quarter, pilot_of_it) == rules.kernel(whole, pilot_of_it)
    warmup, why = rules.num_burnin_steps(quarter, 64)
    usual, _ = rules.num_burnin_steps(whole, 64)
    assert warmup == pytest.approx(max(usual / 4, 100), abs=50) and "effort 0.25" in why
    few, why = rules.pretraining(quarter, pilot_of_it)
    many, _ = rules.pretraining(whole, pilot_of_it)
    assert few.epochs == pytest.approx(many.epochs / 4, rel=0.01, abs=1) and "effort 0.25" in why
    assert few.num_starts == (many.num_starts and 4)
    assert few.newton_iterations == 0
    half, _ = rules.pretraining(whole._replace(effort=0.5), pilot_of_it)
    assert half.newton_iterations == many.newton_iterations
    same = ("batch_size", "validation_split")
    assert [getattr(few, field) for field in same] == [getattr(many, field) for field in same]


@pytest.mark.parametrize("noise", [0.2, 0.01])
def test_more_starts_are_tried_only_where_their_polish_is_affordable(noise):
    found = [rules.pretraining(sizes(n, 5, 1), pilot(noise))[0] for n in (12_000, 60_000, 10**5)]
    assert [settings.num_starts for settings in found] == [8, None, None]


@pytest.mark.parametrize("num_rows", [10, 20, 40, 53, 54, 455, 10**5])
def test_rows_to_judge_by_are_held_out_of_small_tables_too(num_rows):
    settings, _ = rules.pretraining(sizes(num_rows, 5, 1), pilot(0.6))
    held_out = round(settings.validation_split * num_rows)
    assert min(8, 0.4 * num_rows) <= held_out <= max(8, min(0.16 * num_rows, 2000))


def test_a_handful_of_rows_is_not_polished():
    settings, why = rules.pretraining(sizes(9, 5, 1), pilot(0.01))
    assert settings.newton_iterations == 0 and settings.epochs == 500 and "N = 9" in why


@pytest.mark.parametrize("num_rows", [31, 33, 455, 2048, 20_000, 10**6])
def test_pretraining_makes_about_as_many_steps_whatever_the_rows(num_rows):
    settings, why = rules.pretraining(sizes(num_rows, 5, 1), pilot(0.1))
    seen = num_rows if settings.search_rows is None else settings.search_rows
    steps = settings.epochs * -(-seen // settings.batch_size)
    assert 8_000 <= steps <= 16_000
    assert f"{steps} steps of {min(settings.batch_size, num_rows)} rows" in why


@pytest.mark.parametrize(
    "num_rows, gradients", [(100, 64), (5_000, 127), (10**5, 32), (10**6, 64), (10**7, 1)]
)
def test_warm_up_stays_within_its_budget_or_at_its_least(num_rows, gradients):
    table = sizes(num_rows, 10, 1)
    steps, _ = rules.num_burnin_steps(table, gradients)
    assert 100 <= steps <= 1000 and steps % 50 == 0
    work = table.work * gradients * steps
    assert work <= 1.6e11 or steps == 100
    assert work > 0.8e11 or steps in (100, 1000)


def test_adam_has_failed_where_it_misses_by_far_more_than_the_pilot():
    def limit(noise, num_rows=455):
        return rules.pretraining(sizes(num_rows, 13, 1), pilot(noise))[0].largest_misfit

    assert [limit(noise) for noise in (0.001, 0.2, 0.3, 0.49)] == [0.5, 0.5, 0.6, 0.98]
    # Of noise nobody can tell, and on many rows another attempt takes long.
    assert limit(0.6) is None and limit(0.2, num_rows=10**6) is None


def test_each_reason_is_one_line_with_a_number_that_decided():
    for table in TABLES.values():
        warmup = rules.num_burnin_steps(table[0], 64)
        for _, why in (rules.kernel(*table), warmup, rules.pretraining(*table)):
            assert "\n" not in why and len(why) < 140 and any(map(str.isdigit, why))


def test_starts_of_many_rows_are_sought_on_a_sample_whose_size_is_that_of_the_network():
    def search(num_rows, weights, noise=0.7):
        return rules.pretraining(FitSizes(num_rows, weights), pilot(noise))

    sizes_of_samples = [search(n, 351)[0].search_rows for n in (2**16, 2**16 + 1, 10**8)]
    assert sizes_of_samples == [None, 2**16, 2**16]
    assert search(10**6, 20_000)[0].search_rows == 200_000
    # The same work for any number of rows, and Levenberg-Marquardt whatever the noise.
    found = [search(n, 351)[0] for n in (10**6, 10**8)]
    assert len({(one.epochs, one.batch_size, one.newton_iterations) for one in found}) == 1
    assert found[0].newton_iterations == "auto" and search(2**16, 351)[0].newton_iterations == 0
    assert "from a sample of 65536" in search(10**6, 351)[1]


def test_chains_of_many_rows_take_the_steps_that_a_count_of_arithmetic_affords():
    def steps(num_rows, weights, num_chains=4):
        return rules.kernel(FitSizes(num_rows, weights, num_chains), pilot(0.1))[0]

    lengths = [steps(10**6, weights).num_leapfrog_steps for weights in (351, 1000, 10**4)]
    assert lengths == [32, 20, 8]
    assert steps(10**6, 1000, num_chains=8).num_leapfrog_steps == 10
    assert steps(2**16, 10_000).num_leapfrog_steps == 32
    # The matrix of all rows that whitens costs N P^2.
    assert [steps(n, 351).preconditioner for n in (10**6, 10**8)] == ["auto", "diagonal"]


@pytest.mark.parametrize(
    "different",
    [
        {},
        {"noise": 0.1},
        {"num_rows": 1501},
        {"num_rows": 399},
        {"can_cool": False},
        {"effort": 0.4},
    ],
    ids=str,
)
def test_a_population_is_cooled_where_rows_with_next_to_no_noise_determine_the_weights(different):
    noise, settings = different.get("noise", 0.01), {"num_rows": 400, "num_parameters": 200}
    some = FitSizes(**settings | {k: v for k, v in different.items() if k != "noise"})
    found, why = rules.pretraining(some, pilot(noise))
    assert (found.num_particles is None) == bool(different) == ("cooled" not in why)
    # Beside it stands the search by ADAM, for fits that have no time for particles.
    adam, _ = rules.pretraining(some._replace(can_cool=False), pilot(noise))
    assert found == replace(adam, num_particles=found.num_particles)
