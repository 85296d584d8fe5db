"""A made-up point of parameter space, and where the inputs of made-up processes are in it."""

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
