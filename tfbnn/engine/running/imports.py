"""What worker processes import besides this package: functions and classes that a caller brings."""

from tfbnn.engine.keras.custom import import_obstacle
from tfbnn.spec.density_spec import DensitySpec
from tfbnn.spec.keras_spec import KerasSpec
from tfbnn.spec.sampled import Sampled


def names_to_import(spec: Sampled) -> tuple[str, ...]:
    """The functions of a log density, or the classes of a Keras model: "module:name" each."""
    if isinstance(spec, DensitySpec):
        return spec.names
    return spec.facts.custom if isinstance(spec, KerasSpec) else ()


def check_imports(spec: Sampled, num_workers: int | str) -> None:
    """Refuses worker processes for classes of layers that only this process has.

    Raises:
        ValueError: In that case.
    """
    obstacle = why_no_workers(spec)
    if num_workers not in (1, "auto") and obstacle is not None:
        raise ValueError(
            f"num_workers={num_workers} needs layers that other processes can import, received one "
            f"they cannot: {obstacle}. Define it in a module of its own, or use num_workers=1."
        )


def why_no_workers(spec: Sampled) -> str | None:
    """Why other processes cannot have the layers of a Keras model, or None."""
    return import_obstacle(spec.facts.custom) if isinstance(spec, KerasSpec) else None
