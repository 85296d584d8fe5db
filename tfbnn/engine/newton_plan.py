"""Decides how starts are polished: how many Levenberg-Marquardt iterations, solved in which way."""

from typing import NamedTuple

from tfbnn.engine.curvature import MAX_CG_STEPS

__all__ = ["NewtonPlan", "plan_newton"]

# "auto" spends about so many operations per chain, half a minute on two cores.
_BUDGET = 1.5e12
_MOST_ITERATIONS = 200
# Fewer exact iterations than this do not reach a mode; approximate ones are cheaper then.
_FEWEST_EXACT, _FEWEST_APPROXIMATE = 25, 10
# Asked for by number, exact iterations may cost so many times more than approximate ones.
_WORTH_OF_EXACT = 10.0
_LARGEST_ARRAY = 2e9  # bytes
_NAMES = {
    "dense": "the P x P matrix",
    "rows": "the N x N form",
    "products": "conjugate gradients",
}


class NewtonPlan(NamedTuple):
    """At most `num_iterations`, by `method` ("dense", "rows", "products"), and why."""

    num_iterations: int
    method: str
    reason: str


def plan_newton(spec, num_rows, settings):
    """The plan for one chain.

    Args:
        spec: ModelSpec.
        num_rows: Training rows N.
        settings: tfbnn.Pretraining.

    Returns:
        NewtonPlan; "auto" chooses no iterations where fewer than ten are affordable, and leaves
        alone the points that early stopping chose.
    """
    size, lines = spec.layout.num_parameters, num_rows * spec.layer_sizes[-1]
    costs = _costs(size, lines)
    exact = min((name for name in costs if name != "products"), key=costs.get, default=None)
    about = f"N = {num_rows}, P = {size}"
    if settings.newton_iterations != "auto":
        worth = exact and costs[exact] <= _WORTH_OF_EXACT * costs["products"]
        method = exact if worth else "products"
        return NewtonPlan(settings.newton_iterations, method, f"as asked, by {_NAMES[method]}")
    if settings.early_stopping:
        return NewtonPlan(0, "products", "auto: early stopping chose the point")
    for method, fewest in ((exact, _FEWEST_EXACT), ("products", _FEWEST_APPROXIMATE)):
        affordable = int(_BUDGET / costs[method]) if method else 0
        if affordable >= fewest:
            count = min(affordable, _MOST_ITERATIONS)
            reason = f"auto: {_NAMES[method]} affords {count} for {about}"
            return NewtonPlan(count, method, reason)
    return NewtonPlan(0, "products", f"auto: ADAM alone, too costly for {about}")


def _costs(size, lines):
    """Operations of one iteration by every method whose arrays fit in memory."""
    costs = {"products": 2.0 * MAX_CG_STEPS * 12.0 * lines * size}
    if 8.0 * size**2 <= _LARGEST_ARRAY:
        costs["dense"] = 2.0 * lines * size**2 + 3.0 * size**3
    if lines < size and 8.0 * lines * size <= _LARGEST_ARRAY:
        costs["rows"] = 4.0 * lines**2 * size + 3.0 * lines**3
    return costs
