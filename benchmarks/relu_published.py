"""What Dinh, Ho and Nguyen 2024 (arXiv:2410.22065) measured, to compare with."""

__all__ = ["ACCEPTANCE", "OPTIMUM", "STEP_SIZES"]

STEP_SIZES = (0.0005, 0.0010, 0.0015, 0.0020, 0.0025)

# Table 2: activation -> number of leapfrog steps -> mean acceptance at each of STEP_SIZES.
ACCEPTANCE = {
    "sigmoid": {
        200: (0.994, 0.981, 0.960, 0.925, 0.861),
        400: (0.996, 0.980, 0.954, 0.911, 0.849),
        600: (0.996, 0.982, 0.956, 0.916, 0.851),
        800: (0.997, 0.980, 0.955, 0.920, 0.841),
        1000: (0.996, 0.983, 0.954, 0.918, 0.848),
    },
    "relu": {
        200: (0.933, 0.652, 0.160, 0.083, 0.003),
        400: (0.928, 0.627, 0.161, 0.029, 0.001),
        600: (0.921, 0.588, 0.091, 0.004, 0.000),
        800: (0.905, 0.556, 0.047, 0.000, 0.000),
        1000: (0.897, 0.527, 0.030, 0.000, 0.000),
    },
    "leaky_relu": {
        200: (0.937, 0.653, 0.192, 0.000, 0.000),
        400: (0.923, 0.597, 0.063, 0.000, 0.000),
        600: (0.914, 0.577, 0.019, 0.000, 0.000),
        800: (0.911, 0.535, 0.008, 0.000, 0.000),
        1000: (0.904, 0.468, 0.001, 0.000, 0.000),
    },
}

# Which slope it is, is not said.
ACCEPTANCE["leaky_relu_0.01"] = ACCEPTANCE["leaky_relu"]

# Section 4.1: acceptance where eps * acceptance is largest, at the travel time 0.1.
OPTIMUM = {"sigmoid": 0.755, "relu": 0.6525, "leaky_relu": 0.724, "leaky_relu_0.01": 0.724}
