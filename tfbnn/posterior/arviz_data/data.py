"""`Ensemble.to_arviz`: checks, and the object that ArviZ works with."""

from __future__ import annotations

from typing import Any

from tfbnn.data.validation import check_integer
from tfbnn.exceptions import NotFittedError
from tfbnn.posterior.arviz_data.at_rows import Points, at_rows
from tfbnn.posterior.arviz_data.groups import Group, Groups, add_rows, groups_of_draws
from tfbnn.posterior.arviz_data.variables import coordinates
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.stacking.stacking import weighting_note
from tfbnn.spec.rows import Rows, num_known
from tfbnn.system.arrays import Array
from tfbnn.system.extras import required
from tfbnn.system.version import __version__
from tfbnn.system.warn import warn

_NEED = "to_arviz needs ArviZ", "arviz"


def to_arviz(ensemble: Ensemble, x: Any, y: Any, noise_scale: Any, seed: int) -> Any:
    """See `Ensemble.to_arviz`."""
    ensemble.require_networks("to_arviz")
    for module in ("arviz", "xarray"):
        required(module, *_NEED)  # before anything is computed
    if ensemble.num_draws == 0:
        raise NotFittedError("There are no draws to hand over to ArviZ.")
    seed = check_integer("seed", seed, minimum=0)
    for name, value in (("y", y), ("noise_scale", noise_scale)):
        if x is None and value is not None:
            raise ValueError(f"{name} belongs to rows, received x=None. Pass their inputs as x.")
    groups = groups_of_draws(ensemble)
    if x is not None:
        points = Points.checked(ensemble, x, y, noise_scale)
        with_density = points.rows is not None and _has_density(ensemble, points.rows)
        add_rows(groups, ensemble, points, at_rows(ensemble, points, with_density, seed))
    _warn_of_weights(ensemble)
    return arviz_object(groups, coordinates(ensemble))


def arviz_object(groups: Groups, names: dict[str, Array]) -> Any:
    """Groups as ArviZ works with them.

    Args:
        groups: Dict name -> Group.
        names: Dict dimension -> its coordinates; others are numbered.

    Raises:
        ImportError: Without ArviZ.
    """
    arviz, xarray = required("arviz", *_NEED), required("xarray", *_NEED)
    datasets = {name: _dataset(xarray, group, names) for name, group in groups.items()}
    return arviz.InferenceData(**datasets)


def _has_density(ensemble: Ensemble, rows: Rows) -> bool:
    """Whether rows can be left out of these draws by importance sampling; says why not."""
    power, origin = ensemble.spec.likelihood_power, ensemble.provenance
    reason = None
    if origin.not_sampled is not None:
        reason = "draws of the posterior, which this model has none of"
    elif power < 1.0:
        reason = f"rows that count as a whole, received likelihood_power={power!r}"
    if reason is not None:
        warn(
            f"log_likelihood is left out: az.loo would need {reason}. Score held-out rows with "
            "model.evaluate.",
        )
        return False
    known = num_known(ensemble.row_digests, rows)
    if len(ensemble.row_digests) and known < len(rows.x):
        warn(
            f"{len(rows.x) - known} of {len(rows.x)} rows took no part in the fit, so that az.loo, "
            "which leaves out rows of the fit, says nothing of them. Score them with "
            "model.evaluate, or pass rows of the fit.",
        )
    return True


def _warn_of_weights(ensemble: Ensemble) -> None:
    note = weighting_note(ensemble)
    if note is not None:
        warn(
            f"ArviZ gives all chains the same weight, but these are {note}. Use "
            "model.compress(...).posterior.to_arviz(...) for draws that need no weights.",
        )


def _dataset(xarray: Any, group: Group, names: dict[str, Array]) -> Any:
    """The Dataset of a group, with those of the named coordinates that it has a dimension for."""
    variables = {
        name: (one.dims, one.values, {"description": one.description} if one.description else {})
        for name, one in group.variables.items()
    }
    sizes = {
        dim: size
        for one in group.variables.values()
        for dim, size in zip(one.dims, one.values.shape)
    }
    coords = {dim: names.get(dim, range(size)) for dim, size in sizes.items()}
    attributes = {"inference_library": "tfbnn", "inference_library_version": __version__}
    return xarray.Dataset(variables, coords, attributes | group.attributes)
