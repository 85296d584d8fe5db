"""All faults that the suite has to see, by name.

`mutation.examine` holds a bug against every check of its case and against further ones that it brings.
"""

from engine_bugs import ENGINE_BUGS
from kernel_bugs import HARMLESS, KERNEL_BUGS
from ladder_bugs import LADDER_BUGS
from manifold_bugs import MANIFOLD_BUGS
from readout_bugs import READOUT_BUGS
from trajectory_bugs import TRAJECTORY_BUGS

__all__ = ["BUGS", "HARMLESS"]

BUGS = {
    **KERNEL_BUGS,
    **TRAJECTORY_BUGS,
    **LADDER_BUGS,
    **MANIFOLD_BUGS,
    **READOUT_BUGS,
    **ENGINE_BUGS,
}
