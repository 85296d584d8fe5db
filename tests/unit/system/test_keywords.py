"""Unknown keyword arguments: the refusal says what may have been meant."""

import inspect

import pytest

from tfbnn.system.keywords import explains_keywords


@explains_keywords({"epochs": "It is one of Pretraining."})
def fit(x, *, num_results=10, seed=0):
    """Fits."""
    return x, num_results, seed


def test_known_arguments_pass():
    assert fit(1, seed=3) == (1, 10, 3)
    assert fit(x=2, num_results=4) == (2, 4, 0)
    assert list(inspect.signature(fit).parameters) == ["x", "num_results", "seed"]
    assert fit.__doc__ == "Fits."


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("num_result", " Did you mean 'num_results'?"),
        ("epochs", " It is one of Pretraining."),
        ("xyzzy", ""),
    ],
)
def test_unknown_ones_are_explained(name, remedy):
    with pytest.raises(TypeError) as caught:
        fit(1, **{name: 5})
    assert str(caught.value) == f"fit() got an unexpected keyword argument {name!r}.{remedy}"


def test_what_else_is_wrong_python_says():
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        fit()
