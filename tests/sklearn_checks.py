"""scikit-learn's checks of an estimator, where failures that are expected must come."""

import pytest
from sklearn.utils.estimator_checks import check_estimator

# Why scikit-learn's check that weights are copies fails.
WEIGHTS_ARE_RELATIVE = "weights are relative: copies claim more independent rows than weights do"
_OF_WEIGHTS = "check_sample_weight_equivalence_on_dense_data"


def copies_differ(reason=WEIGHTS_ARE_RELATIVE):
    """Expected failures of an estimator for which a row of weight w is not w rows."""
    return {_OF_WEIGHTS: reason}


def expect_checks(estimator, expected):
    """All checks pass but the expected ones (reasons by names), and these fail."""
    results = check_estimator(estimator, expected_failed_checks=expected, on_skip=None)
    failed = {one["check_name"] for one in results if one["status"] == "xfail"}
    assert failed == set(expected)


def mark_copies(request, check, reason=WEIGHTS_ARE_RELATIVE):
    """Expect a check to fail if it is the one that takes weights for copies."""
    if _OF_WEIGHTS in str(check):
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True, raises=AssertionError))
