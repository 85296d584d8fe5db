"""All faults that the suite has to see, by name.

`mutation.examine` holds a bug against every check of its case and against further ones that it brings.
"""

from tests.support.bugs.engine import ENGINE_BUGS
from tests.support.bugs.kernels import HARMLESS, KERNEL_BUGS
from tests.support.bugs.ladders import LADDER_BUGS
from tests.support.bugs.manifolds import MANIFOLD_BUGS
from tests.support.bugs.readouts import READOUT_BUGS
from tests.support.bugs.trajectories import TRAJECTORY_BUGS

__all__ = ["BUGS", "HARMLESS"]

BUGS = {
    **KERNEL_BUGS,
    **TRAJECTORY_BUGS,
    **LADDER_BUGS,
    **MANIFOLD_BUGS,
    **READOUT_BUGS,
    **ENGINE_BUGS,
}
