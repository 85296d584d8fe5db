"""Plan of Levenberg-Marquardt: the number of iterations per start and the linear solver."""

from math import inf
from typing import NamedTuple

from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.settings_json import Pretraining

# "auto" spends about so many operations per chain, half a minute on two cores.
_BUDGET = 2.4e12
# On a sample of many rows it spends two minutes. The posterior is then so narrow that a chain which
# starts far from the mode stays there. On 65536 rows of the leading-order cross section, whose
# noise is .087 decades, a 5-20-20-1 network missed the function by .038 decades after 20
# iterations, by .019 after 140, in 198 s of a processor.
_BUDGET_OF_A_SAMPLE = 9.6e12
_MOST_ITERATIONS = 200
# Fewer iterations gain less than ADAM does in the same time. On two splits of concrete, 20
# iterations of a 50-50 network scored -2.52 and -2.36 per row, ADAM -2.47 and -2.24 in 15 s less.
FEWEST_ITERATIONS = 25
# Iterations on all rows after those on a sample of the rows. Few suffice: the mode of all rows is
# next to that of the sample, and Newton's method doubles the digits.
_MOST_ON_ALL_ROWS = 5
# Held-out rows end the search after about so many iterations: on yacht after 22 to 40.
USUAL_ITERATIONS = 40
_LARGEST_ARRAY = 2e9  # bytes
# Fixed cost of the calls in each iteration, however few rows there are: 25 ms of two cores.
_FLOPS_BESIDE = 2e9
_NAMES = {"dense": "the P x P matrix", "rows": "the N x N form"}


class NewtonPlan(NamedTuple):
    """Plan of the iterations for one start.

    Attributes:
        num_iterations: Largest number of iterations; 0 for none.
        method: "dense", "rows", or "" for none.
        reason: Reason for this choice, as a phrase.
        flops: Operations of one iteration.
    """

    num_iterations: int
    method: str
    reason: str
    flops: float = 0.0


def plan_newton(spec: NetworkSpec, num_rows: int, settings: Pretraining) -> NewtonPlan:
    """Return the plan for one chain.

    Args:
        spec: The model.
        num_rows: Training rows N.
        settings: tfbnn.Pretraining.

    Returns:
        NewtonPlan. "auto" plans no iterations if fewer than 25 are affordable, or if early stopping
        has chosen the points.
    """
    size, lines = spec.layout.num_parameters, num_rows * spec.num_outputs
    if spec.network.no_jacobian is not None:
        return NewtonPlan(0, "", f"none, as {spec.network.no_jacobian}")
    method, flops = _cheapest(size, lines)
    about = f"N = {num_rows}, P = {size}"
    if settings.newton_iterations != "auto":
        if not method:
            return NewtonPlan(0, "", f"none, as no matrix for {about} fits in memory")
        reason = f"as asked, by {_NAMES[method]}"
        return NewtonPlan(int(settings.newton_iterations), method, reason, flops)
    if settings.early_stopping and not settings.validation_split:
        return NewtonPlan(0, "", "auto: early stopping chose the point")
    is_sample = settings.search_rows is not None and num_rows >= settings.search_rows
    affordable = int((_BUDGET_OF_A_SAMPLE if is_sample else _BUDGET) / flops)
    if affordable >= FEWEST_ITERATIONS:
        count = min(affordable, _MOST_ITERATIONS)
        reason = f"auto: {_NAMES[method]} affords {count} for {about}"
        return NewtonPlan(count, method, reason, flops)
    return NewtonPlan(0, "", f"auto: ADAM alone, too costly for {about}")


def plan_on_all_rows(spec: NetworkSpec, num_rows: int) -> NewtonPlan:
    """Return the plan on all rows, for starts polished on a sample: at most half a minute each.

    Args:
        spec: The model.
        num_rows: Training rows N.
    """
    method, flops = _cheapest(spec.layout.num_parameters, num_rows * spec.num_outputs)
    count = min(int(_BUDGET / flops), _MOST_ON_ALL_ROWS)
    return NewtonPlan(count, method, f"{count} on all rows", flops)


def _cheapest(size: int, lines: int) -> tuple[str, float]:
    """Return (method, operations per iteration) of the cheapest method that fits in memory.

    Return ("", inf) if none fits. The costs are fitted to seconds on two cores and include rejected
    steps. On another machine they were right within a factor of 2.6
    (benchmarks/results/levenberg_marquardt.md).
    """
    gradients, costs = _FLOPS_BESIDE + 1e3 * lines * size, {"": inf}
    if 8.0 * size**2 <= _LARGEST_ARRAY:
        costs["dense"] = gradients + 2.5 * lines * size**2 + 5.0 * size**3
    if lines < size and 8.0 * lines * size <= _LARGEST_ARRAY:
        costs["rows"] = gradients + 4.0 * lines**2 * size + 3.0 * lines**3
    method = min(costs, key=costs.__getitem__)
    return method, costs[method]
