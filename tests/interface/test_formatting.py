"""Times and sizes in the units that people use."""

import pytest
from sklearn.datasets import load_breast_cancer

from certree import CertifiedTreeClassifier
from certree.interface.formatting import format_duration, format_file_size, format_row_total


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
    assert format_duration(seconds) == words


@pytest.mark.parametrize(
    ("n_bytes", "words"),
    [(0, "0 kB"), (840, "0.84 kB"), (99_400, "99 kB"), (412_300, "412 kB"), (999_600, "1 MB")],
)
def test_sizes_of_files(n_bytes, words):
    assert format_file_size(n_bytes) == words


def test_columns_and_certificates_are_short_at_a_prompt():
    X, y = load_breast_cancer(return_X_y=True)
    model = CertifiedTreeClassifier(train_size=0.5, random_state=0).fit(X, y)
    n = model.tree_.n_nodes
    assert f"feature=<int32 of shape ({n},)>" in repr(model.tree_)
    assert "n_features=30" in repr(model.tree_)
    assert "root=[0]" in repr(model.tree_)
    for held in (model.tree_, model.weights_, model.guarantees_, model.calibration_):
        assert len(repr(held)) < 1000
        assert "array(" not in repr(held)
    certificate = model.certificate_
    assert repr(certificate) == (
        f"Certificate(method='{certificate.method}', bound={certificate.bound!r}, "
        f"risk={certificate.risk!r}, n={certificate.n}, delta=0.05, ...)"
    )
    part = model.conditional_guarantees().recall.worst
    assert f"part='{part.part}'" in repr(part)


def test_totals_that_are_no_integers_are_weights():
    assert format_row_total(1.0) == "1 row"
    assert format_row_total(1234, "training row") == "1,234 training rows"
    assert format_row_total(484.381) == "rows of weight 484.4"
    assert format_row_total(0.5, "training row") == "training rows of weight 0.5"
