"""Which tier a test belongs to: CONTRIBUTING.md says what for.

A test is `fast` unless its place or a marker says that it needs TensorFlow or belongs to another tier.
`pytest -m fast` collects nothing else and lets nothing import TensorFlow.
"""

import gc
import os
import sys
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
# All of what lies here needs TensorFlow.
WITH_TENSORFLOW = [
    TESTS / folder
    for folder in (
        "cluster",
        "durability/fits",
        "integration",
        "kernels",
        "processes",
        "truth",
        "unit/engine/basis",
        "unit/engine/density",
        "unit/engine/export",
        "unit/engine/keras",
        "unit/engine/running",
        "unit/engine/sampling",
        "unit/engine/starts",
    )
]
# Fixtures that need it, too, and markers of tests that are not fast.
ENGINE_FIXTURES = {"groups", "tiny_fit", "tiny_model"}
NOT_FAST = {
    "tensorflow",
    "processes",
    "cluster",
    "statistics",
    "benchmarks",
    "browser",
    "slow",
    "gpu",
}


class NoTensorFlow:
    """Finds none, and says so in a way that no code takes for a missing extra."""

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("tensorflow", "tensorflow_probability", "keras", "tf_keras"):
            raise RuntimeError(f"a fast test imports {name}: mark it with pytest.mark.tensorflow")


def pytest_addoption(parser):
    parser.addoption(
        "--few-cases",
        action="store_true",
        help="of each parametrised test the last case",
    )


def _only_fast(config):
    return config.option.markexpr == "fast"


def pytest_configure(config):
    if "gpu" not in config.option.markexpr:
        # Some rules differ with one, and their tests are of processors. Worker processes see none either.
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    if _only_fast(config):
        sys.meta_path.insert(0, NoTensorFlow())


@cache
def _needs_tensorflow(path):
    return any(path.is_relative_to(folder) for folder in WITH_TENSORFLOW)


def pytest_ignore_collect(collection_path, config):
    return True if _only_fast(config) and _needs_tensorflow(collection_path) else None


# First, as markers select among what is left here.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0]
        if folder in ("browser", "cluster", "processes"):
            item.add_marker(folder)
        if not (
            _needs_tensorflow(item.path)
            or ENGINE_FIXTURES & set(item.fixturenames)
            or NOT_FAST & {mark.name for mark in item.iter_markers()}
        ):
            item.add_marker("fast")
    if config.option.few_cases:
        _leave_few_cases(config, items)


def pytest_collection():
    """Nothing made here goes away; to search it for cycles takes a quarter of the time of collection."""
    gc.disable()


def pytest_collection_finish():
    """Takes modules and tests from what is searched for cycles again and again, 4 % of all time."""
    gc.collect()
    gc.freeze()
    gc.enable()


def _leave_few_cases(config, items):
    """Deselects all but the last case of each test."""
    tests = {}
    for item in items:
        tests.setdefault((item.path, item.parent.nodeid, item.originalname), []).append(item)
    kept = {cases[-1] for cases in tests.values()}
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def pytest_runtest_setup(item):
    if item.get_closest_marker("slow") and "slow" not in item.config.option.markexpr:
        pytest.skip("slow: select it with -m slow")
    if item.get_closest_marker("realdata") and not os.environ.get("TFBNN_DATA"):
        pytest.skip("needs the folder of data that TFBNN_DATA names")
    if item.get_closest_marker("gpu") and not _tensorflow_sees_a_gpu():
        pytest.skip("needs a GPU that TensorFlow sees")


def _tensorflow_sees_a_gpu():
    import tensorflow as tf

    return bool(tf.config.list_physical_devices("GPU"))
