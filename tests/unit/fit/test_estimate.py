"""How long a fit will take, in words."""

import pytest

from tfbnn.fit.job import _about


@pytest.mark.parametrize(
    "seconds, words",
    [
        (0.2, "1 second"),
        (23.0, "20 seconds"),
        (180.0, "3 minutes"),
        (9000.0, "2.5 hours"),
        (5.4e5, "150 hours"),
    ],
)
def test_a_time_is_told_in_words(seconds, words):
    assert _about(seconds) == words
