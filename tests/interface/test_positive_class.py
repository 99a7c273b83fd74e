"""Which of two classes is the positive one, and what is refused."""

import numpy as np
import pytest

from certree.interface.positive_class import find_positive_class


def test_the_second_class_is_positive_unless_another_is_named():
    names = np.array(["default", "paid"])
    assert find_positive_class(names, None) == 1
    assert [find_positive_class(names, name) for name in names] == [0, 1]
    assert find_positive_class(np.array([0, 1]), np.int64(0)) == 0
    assert find_positive_class(np.array([False, True]), False) == 0
    days = np.array(["2020-01-01", "2021-01-01"], "datetime64[ns]")
    assert [find_positive_class(days, day) for day in days] == [0, 1]
    assert find_positive_class(np.arange(3), None) == find_positive_class(None, None) == 1


@pytest.mark.parametrize(
    ("classes", "pos_label", "message"),
    [
        (["default", "paid"], "Default", "one of the classes 'default' and 'paid', got 'Default'"),
        ([0, 1], "1", "one of the classes 0 and 1, got '1'"),
        ([0, 1], [1], r"one of the classes 0 and 1, got \[1\]"),
        ([0, 1], np.array([1, 2]), r"one of the classes 0 and 1, got array\(\[1, 2\]\)"),
        (
            ["a", "b", "c"],
            "a",
            r"pos_label='a' and 3 classes: \['a', 'b', 'c'\]: leave pos_label out",
        ),
        (None, 1, "pos_label=1 and a target without classes: leave pos_label out"),
    ],
)
def test_other_positive_classes_are_refused(classes, pos_label, message):
    with pytest.raises(ValueError, match=f"^pos_label must be .*{message}$"):
        find_positive_class(None if classes is None else np.array(classes), pos_label)
