"""Whether inputs lie where there were training data: 1 inside, 0 at the edge, -1 outside.

The numbers are GAMBIT's trust levels: fine, questionable, do not trust. They are about the inputs
alone, on the scale the network sees, and no statement about the error there; data with holes or on
a curved surface have more "inside" than is covered.
"""

import numpy as np

INSIDE, EDGE, OUTSIDE = 1, 0, -1

# How far beyond the training data the edge reaches, as a share of each input's range and of the
# largest distance. A network still interpolates a little past its last row; 10 % is convention.
_MARGIN = 0.1


def trust_levels(training_inputs, x):
    """Trust levels of transformed inputs.

    Inside: no input is beyond its range, and the Mahalanobis distance from the mean is within the
    99 % quantile of the training inputs' own, as the corners of the box are empty where inputs
    are correlated. Outside: some input is beyond its range by more than 10 % of that range, or the
    distance is more than 10 % beyond the largest of the training inputs. Else at the edge.

    So about 1 % of new rows like the training rows are at the edge by their distance, about
    2 D / N of them because N rows do not reach the ends of the range, and hardly any is outside.

    Args:
        training_inputs: `tfbnn.data.training_inputs.TrainingInputs`.
        x: Inputs [N, D] on the scale the network sees.

    Returns:
        Integers [N].
    """
    low, high = training_inputs.low, training_inputs.high
    beyond = np.maximum(low - x, x - high)
    distance, (usual, largest) = training_inputs.distance(x), training_inputs.distances
    inside = np.all(beyond <= 0, axis=1) & (distance <= usual)
    outside = np.any(beyond > _MARGIN * (high - low), axis=1)
    outside |= distance > (1 + _MARGIN) * largest
    return np.select([inside, outside], [INSIDE, OUTSIDE], EDGE)
