import numpy as np
import pytest

import certree
from certree.interface.arrays import check_column


def test_truth_values_are_true_or_false():
    odd = np.array([0, 1, 2], dtype=np.uint8).view(np.bool_)
    with pytest.raises(ValueError, match="missing_left must hold only True and False"):
        check_column("missing_left", odd, "bool", (3,))
    np.testing.assert_array_equal(
        check_column("missing_left", odd[:2], "bool", (2,)), [False, True]
    )


def test_trees_with_odd_truth_values_are_refused():
    stump = certree.grow_cart([[0.0], [1.0]], [0, 1], max_depth=1)
    columns = {name: getattr(stump, name) for name in stump.__dataclass_fields__}
    columns["missing_left"] = np.array([7, 0, 0], dtype=np.uint8).view(np.bool_)
    with pytest.raises(ValueError, match="missing_left must hold only True and False"):
        type(stump)(**columns)
