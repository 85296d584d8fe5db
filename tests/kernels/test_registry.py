"""Check what holds for every sampler by its declaration: names, cases, settings, options."""

import argparse
import dataclasses

import numpy as np
import pytest

from tests.support.commands import check_refusal
from tests.support.kernels.cases import CASES, build, target_of
from tests.support.kernels.joint_readouts import CASES as READOUTS
from tests.support.kernels.ladder_checks import LADDER
from tests.support.without_tensorflow import commands_without_tensorflow, run_without_tensorflow
from tfbnn import kernels
from tfbnn.cli.fit_options import add_kernel_options
from tfbnn.engine.kernels.base import KERNELS, Kernel, TunedKernel
from tfbnn.engine.kernels.registry import ComposedKernel, resolve_kernel


@pytest.fixture
def registry():
    """The registry, which forgets what a test adds."""
    before = dict(KERNELS)
    yield KERNELS
    KERNELS.clear()
    KERNELS.update(before)


def options():
    """Dict from option to what argparse knows of it."""
    parser = argparse.ArgumentParser()
    add_kernel_options(parser.add_argument_group("kernel"))
    return parser._option_string_actions


def test_every_sampler_has_a_case():
    settings = [case.settings for case in CASES.values()]
    settings += [LADDER, *(inside for inside, _ in READOUTS.values())]
    assert {type(one) for one in settings} == set(KERNELS.values())


def test_every_sampler_is_one_file_and_hashable():
    assert len({kernel.__module__ for kernel in KERNELS.values()}) == len(KERNELS)
    for kernel in KERNELS.values():
        assert kernel() == kernel() and hash(kernel()) == hash(kernel())
        assert issubclass(kernel, TunedKernel) != issubclass(kernel, ComposedKernel)


def test_the_face_has_all_of_them():
    names = {kernel.__name__ for kernel in KERNELS.values()}
    assert set(kernels.__all__) == {"available", *names} == set(dir(kernels))
    assert all(getattr(kernels, name).__name__ == name for name in names)
    with pytest.raises(AttributeError, match="'tfbnn.kernels' has no attribute 'Gibbs'"):
        kernels.Gibbs  # noqa: B018


class TestNames:
    def test_of_kernel_and_class_in_any_case(self, registry):
        class Toy(kernels.MALA, name="toy_walk"):
            pass

        for name in ("toy_walk", "TOYWALK", "toy", "Toy"):
            assert type(resolve_kernel(name)) is Toy
        assert "toy_walk" in kernels.available()

    @pytest.mark.parametrize("name, class_name", [("mala", "Toy"), ("toy", "MALA")])
    def test_are_not_taken_twice(self, registry, name, class_name):
        with pytest.raises(ValueError, match=f"{class_name}; there is 'mala', MALA"):
            type(class_name, (kernels.MALA,), {}, name=name)
        assert registry["mala"] is kernels.MALA and "toy" not in registry

    def test_a_class_that_is_defined_anew_takes_its_own_place(self, registry):
        new = type("MALA", (kernels.MALA,), {}, name="mala")
        assert kernels.MALA is new and type(resolve_kernel("mala")) is new

    def test_a_class_without_one_is_used_as_settings_only(self, registry):
        class Quiet(kernels.MALA):
            pass

        assert Quiet not in registry.values()
        assert resolve_kernel(Quiet(step_size=0.1)) == Quiet(step_size=0.1)


def test_what_must_exist_is_named():
    class Empty(TunedKernel):
        pass

    with pytest.raises(TypeError) as refusal:
        Empty()
    for name in ("accept_targets", "build", "gradients_per_transition", "statistics"):
        assert name in str(refusal.value)


def test_a_composed_kernel_is_as_the_one_inside():
    @dataclasses.dataclass(frozen=True)
    class Around(ComposedKernel):
        pass

    inner = kernels.ChEESHMC(step_size=0.1, trajectory_length=1.0, preconditioner="identity")
    around = Around(inner)
    for name in vars(Kernel):
        if not name.startswith("_") and name != "resolve":
            assert getattr(around, name) == getattr(inner, name), name
    assert around.couples_chains and around.step_size == 0.1
    assert around.resolve(None, 10) == (around, "identity, as asked")
    assert Around("hmc") == Around(kernels.HMC()) != around


class TestOptions:
    def test_every_setting_has_one_with_its_help(self):
        found = options()
        for kernel in KERNELS.values():
            for field in dataclasses.fields(kernel):
                assert len(found["--" + field.name.replace("_", "-")].help) > 15, field.name
        assert all(name in found["--kernel"].help for name in KERNELS)

    def test_types_are_those_of_the_fields(self):
        found = options()
        kinds = {name: found[name].type for name in ("--step-size", "--num-leapfrog-steps")}
        assert kinds == {"--step-size": float, "--num-leapfrog-steps": int}
        assert found["--metric"].type.known == ("softabs", "gauss_newton")
        assert set(found["--inner"].type.known) == set(kernels.available())
        assert "--no-adjusted" in found and "--collapse-readout" in found
        assert "--no-collapse-readout" not in found and "--no-adapt-step-size" not in found

    def test_help_says_which_kernels_what_and_the_default(self):
        found = {name: action.help for name, action in options().items()}
        assert found["--step-size"].startswith("fixed step size; default: found at the start")
        assert found["--max-leapfrog-steps"] == (
            "chees_hmc, microcanonical: most leapfrog steps per transition; default 512"
        )
        assert found["--inner"].endswith("default HMC(); its options are accepted too")

    def test_a_type_that_makes_no_option_is_refused(self, registry):
        @dataclasses.dataclass(frozen=True, kw_only=True)
        class Toy(kernels.MALA, name="toy"):
            ladder: tuple = (0.0, 1.0)

        with pytest.raises(TypeError, match="Toy.ladder must be annotated as bool, int.*tuple"):
            options()


class TestWithoutTensorFlow:
    def test_settings_are_read(self):
        code = """
import json
from tfbnn.kernels import HMC, Repriorised, available
from tfbnn.engine.kernels.registry import resolve_kernel
print(json.dumps([available(), [repr(resolve_kernel(name)) for name in available()]]))
"""
        names, settings = run_without_tensorflow(code)
        assert names == kernels.available()
        assert settings == [repr(resolve_kernel(name)) for name in names]

    def test_help_names_every_kernel_and_wrong_settings_are_refused(self, tmp_path):
        (tmp_path / "rows.csv").write_text("x,y\n1,2\n2,3\n")
        refused = {
            "--kernel hcm": "expected one of auto, chees_hmc, hmc",
            "--kernel hmc --step-size -1": "step_size",
            "--kernel hmc --inner nuts": "The kernel hmc has no option --inner",
            "--kernel repriorised --max-tree-depth 3": "has no option --max-tree-depth",
            "--kernel repriorised --inner smmala": "its metric is computed in theta",
        }
        fit = "fit rows.csv --target y --layers 3 "
        commands = ["fit --help", *(fit + given for given in refused)]
        (code, out, err), *results = commands_without_tensorflow(tmp_path, commands)
        assert code == 0 and all(name in out for name in KERNELS), err
        for result, words in zip(results, refused.values(), strict=True):
            check_refusal(result, words)


@pytest.mark.parametrize("name", ["underdamped", "microcanonical", "chees"])
def test_tfp_drives_our_transition_kernels(name):
    """They do not derive from TFP's base class, which the settings beside them must not import."""
    import tensorflow as tf
    import tensorflow_probability as tfp

    case = CASES[name]
    start = tf.constant(target_of(case).draw(np.random.default_rng(0), 5))
    kernel, _ = build(case.settings, target_of(case), 5)
    draws = tfp.mcmc.sample_chain(4, start, kernel=kernel, trace_fn=None, seed=[1, 2])
    assert draws.shape == (4, 5, 3) and np.isfinite(draws).all()
    assert np.any(draws[-1] != start)
