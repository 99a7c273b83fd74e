"""Blocks that set the cluster or the memory limit of fits."""

import pytest

from certree.out_of_core import resources
from certree.out_of_core.resources import get_active_client


class Client:
    """What looks like one of Dask."""

    def submit(self):
        """Nothing is."""

    def scheduler_info(self):
        """Nothing is known."""


def test_a_block_holds_until_it_is_left():
    one, other = Client(), Client()
    assert get_active_client() is None
    with resources(client=one):
        with resources(client=other):
            assert get_active_client() is other
        with resources():
            assert get_active_client() is None
        assert get_active_client() is one
    with pytest.raises(KeyError), resources(client=one):
        raise KeyError
    assert get_active_client() is None


@pytest.mark.parametrize("given", ["tcp://127.0.0.1:8786", 1, [None]])
def test_what_is_no_client_is_refused(given):
    message = r"client must be a distributed\.Client or None"
    with pytest.raises(TypeError, match=message), resources(client=given):
        pass
