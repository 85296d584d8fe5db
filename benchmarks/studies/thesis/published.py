"""Results of the thesis: R. A. Ask 2022, University of Oslo, figures 8.6 to 8.14.

R2 comes from a table that the LaTeX source leaves out, and from vector figures, read to four digits. Leapfrog steps
come from the tables of runs in the author's repository (`reneaas/BNN-Estimation-of-NLO-Cross-Sections`, ce193bb).
"""

_WARM_UP = (32, 128, 512, 2048, 8192)
_WIDTHS = (32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)


def _by(values, *numbers):
    return dict(zip(values, numbers))


# Dict (study, kernel, what) -> dict value -> number. The study of widths has R2 of 10^mean, the others that of the
# mean of 10^f.
PUBLISHED = {
    ("warm-up", "HMC", "r2_log10"): _by(_WARM_UP, 0.9904, 0.9915, 0.9906, 0.9885, 0.9898),
    ("warm-up", "HMC", "r2"): _by(_WARM_UP, 0.9498, 0.9502, 0.9149, 0.9482, 0.8766),
    ("warm-up", "NUTS", "r2_log10"): _by(_WARM_UP, 0.9887, 0.9909, 0.9906, 0.9873, 0.9866),
    ("warm-up", "NUTS", "r2"): _by(_WARM_UP, -1306, 0.9174, 0.9314, 0.8554, 0.8547),
    ("warm-up", "NUTS", "leapfrog_steps"): {
        32: 1688, 64: 2051, 128: 1832, 256: 808, 512: 1892, 1024: 290, 2048: 1116, 4096: 1855, 8192: 935,
    },
    ("pretraining", "HMC", "r2_log10"): _by(_WARM_UP, 0.9844, 0.9874, 0.9895, 0.9903, 0.9908),
    ("pretraining", "HMC", "r2"): _by(_WARM_UP, 0.8856, 0.8551, 0.9358, 0.9265, 0.9466),
    ("width", "HMC", "r2_log10"): _by(
        _WIDTHS, 0.9777, 0.9846, 0.9829, 0.9845, 0.9860, 0.9863, 0.9857, 0.9829, 0.9799
    ),
    ("width", "HMC", "r2_of_10^mean"): _by(
        _WIDTHS, 0.1709, 0.7795, 0.1707, 0.5743, 0.8554, 0.7382, 0.7974, 0.4572, 0.6740
    ),
    ("width", "NUTS", "r2_log10"): _by(
        _WIDTHS, 0.9833, 0.9822, 0.9826, 0.9819, 0.9837, 0.9843, 0.9892
    ),
    ("width", "NUTS", "r2_of_10^mean"): _by(
        _WIDTHS, 0.8626, 0.5472, 0.8788, 0.8827, 0.5986, 0.8371, 0.6679
    ),
}  # fmt: skip
# Shares of targets within 1 to 5 standard deviations, model 3.
COVERAGE = {
    "train": (0.7107, 0.9096, 0.9600, 0.9823, 0.9920),
    "val": (0.7302, 0.9183, 0.9591, 0.9823, 0.9918),
    "test": (0.7072, 0.9110, 0.9660, 0.9846, 0.9909),
}
