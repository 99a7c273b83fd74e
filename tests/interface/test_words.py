"""Times and sizes in the units that people use."""

import pytest

from certree.interface.words import duration, file_size


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0, "0.00 s"),
        (0.134, "0.13 s"),
        (0.9999, "1 s"),
        (2.5, "2.5 s"),
        (59.96, "60 s"),
        (99.4, "99.4 s"),
        (99.6, "2 min"),
        (220, "4 min"),
        (3569, "59 min"),
        (3571, "1 h 0 min"),
        (36_000 + 340, "10 h 6 min"),
    ],
)
def test_durations(seconds, words):
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("n_bytes", "words"),
    [(0, "0 kB"), (840, "0.84 kB"), (99_400, "99 kB"), (412_300, "412 kB"), (999_600, "1 MB")],
)
def test_sizes_of_files(n_bytes, words):
    assert file_size(n_bytes) == words
