"""A made-up point of parameter space, made-up processes, and where their inputs are in it."""

from tests.support.builders import synthetic_ensemble
from tfbnn.fit.model import BayesianMLP
from tfbnn.hep import Process

NEUTRALINOS, CHARGINO = (1000022, 1000023), (-1000024, 1000022)
MASS, MIXING = ("MASS", 1000022), ("NMIX", 1, 1)
SPECTRUM = """
# A comment
BLOCK MODSEL
     1   0
Block Mass  # masses
   1000022    -2.5   # ~chi_10
   1000024     4   # ~chi_1+
Block NMIX Q= 1.0E+03
  1  1     1.75E+00   # N_11
  1  2     0.2
DECAY   1000022     0.0
"""
_LOG = ["log10", "standardize"]


def made_up_processes():
    """Two processes of random networks, of two inputs each: m and n11, m and m_c."""

    def model(**settings):
        return BayesianMLP.from_ensemble(synthetic_ensemble(y_transform=_LOG, **settings))

    return [
        Process(
            pids=NEUTRALINOS[::-1],
            model=model(feature_names=("m", "n11"), vector_target=True),
            unit="fb",
            energy=13000,
            inputs={"n11": MIXING, "m": MASS},
            description="made up",
        ),
        Process(
            pids=CHARGINO,
            model=model(seed=1, row_noise=True),
            unit="pb",
            energy=8000,
            inputs={"m": MASS, "m_c": ("mass", 1000024)},
            include_noise=False,
        ),
    ]
