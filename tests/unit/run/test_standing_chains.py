"""The live warning of chains that do not move."""

import numpy as np
import pytest

from tfbnn.run.counters import Counters
from tfbnn.run.events import SamplingEvent
from tfbnn.run.progress import Notifier


@pytest.mark.parametrize(
    "acceptance, said, advice",
    [
        (1.0, "did not move", "use a larger step_size"),
        (0.0, "accepted none", "use a smaller step_size"),
    ],
)
def test_live_warning_fits_the_cause(acceptance, said, advice):
    group = Counters.nothing([0, 1])
    group = group.after_block("warmup", 30, 30 * np.array([acceptance, 0.8]), np.array([1, 1]))
    event = SamplingEvent(
        phase="warmup",
        transition=30,
        num_transitions=100,
        num_chains=2,
        seconds=1.0,
        eta_seconds=1.0,
        num_kept=0,
        acceptance_rate=0.9,
        step_size=0.1,
        num_divergent=0,
        num_gradients=2,
        standing_still=[0],
        groups=[group],
    )
    notify = Notifier(verbose=0)
    with pytest.warns(UserWarning) as caught:
        notify(event)
        notify(event)  # once is enough
    (warning,) = caught
    assert str(warning.message).startswith(f"Chain 0 {said}") and advice in str(warning.message)
