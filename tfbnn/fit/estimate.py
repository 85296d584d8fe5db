"""How long a fit will take, told from its settings."""

from tfbnn.engine.kernels import resolve_kernel
from tfbnn.fit.choices.choose import settle_options, sizes_of
from tfbnn.run.options import FitOptions
from tfbnn.run.plan import estimated_pretraining_seconds, estimated_seconds
from tfbnn.spec.model_spec import ModelSpec
from tfbnn.spec.settings_json import Pretraining
from tfbnn.system.threads import num_cores


def estimated_fit_seconds(spec: ModelSpec, options: FitOptions, num_rows: int) -> float:
    """About how long pretraining and sampling take on the cores of this process.

    Neither imports, compilation nor Newton iterations are in it. It is right within a factor of a
    few, and reads no clock.

    Args:
        spec: ModelSpec.
        options: FitOptions, whose kernel is none that the user built. What is open in them is
            settled by sizes alone.
        num_rows: Training rows N.
    """
    options, _ = settle_options(options, sizes_of(spec, num_rows))
    settings, _ = resolve_kernel(options.kernel).resolve(spec, num_rows)
    seconds = estimated_seconds(spec, settings, num_rows, options.num_transitions)
    if isinstance(options.pretraining, Pretraining):
        seconds += estimated_pretraining_seconds(spec, options.pretraining, num_rows)
    return seconds * max(1.0, options.num_chains / num_cores())
