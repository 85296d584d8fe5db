"""Names of the samplers for type checkers and editors; `kernels.py` finds them in the registry."""

from tfbnn.engine.kernels.chees import ChEESHMC as ChEESHMC
from tfbnn.engine.kernels.hmc import HMC as HMC
from tfbnn.engine.kernels.mala import MALA as MALA
from tfbnn.engine.kernels.microcanonical import Microcanonical as Microcanonical
from tfbnn.engine.kernels.nuts import NUTS as NUTS
from tfbnn.engine.kernels.pcn import PCN as PCN
from tfbnn.engine.kernels.pcnl import PCNL as PCNL
from tfbnn.engine.kernels.power_posterior import PowerPosterior as PowerPosterior
from tfbnn.engine.kernels.random_walk import RandomWalkMetropolis as RandomWalkMetropolis
from tfbnn.engine.kernels.registry import available as available
from tfbnn.engine.kernels.repriorised import Repriorised as Repriorised
from tfbnn.engine.kernels.smmala import SMMALA as SMMALA
from tfbnn.engine.kernels.truncated_mala import TruncatedMALA as TruncatedMALA
from tfbnn.engine.kernels.underdamped import UnderdampedLangevin as UnderdampedLangevin
