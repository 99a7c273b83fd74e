"""The scale of a loss over several blocks is that of all rows in one."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

import reference
from certree.ensembles.losses import HuberLoss, QuantileLoss, TweedieLoss
from certree.ensembles.out_of_core_categories import _compute_loss_scale
from certree.ensembles.staged import make_constant_scores
from certree.out_of_core.executors import sum_results

LOSSES = [QuantileLoss(quantile=0.3), HuberLoss(quantile=0.9), TweedieLoss(power=1.4)]
START = np.array([0.4])


class Blocks:
    """Blocks in a list, as executors have them."""

    def __init__(self, y, offset, ends):
        self.blocks = [
            SimpleNamespace(n=b - a, y=y[a:b], offset=offset[:, a:b], weight=None)
            for a, b in pairwise(ends)
        ]

    def reduce(self, f, *arguments):
        return sum_results(f(block, *arguments) for block in self.blocks)


@pytest.mark.parametrize("n", [1, 2, 700])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_the_scale_of_a_loss_does_not_depend_on_the_blocks(loss, n):
    rng = np.random.default_rng(n)
    y, offset = rng.lognormal(size=n), rng.normal(size=(1, n))
    scores = make_constant_scores(START, n, offset)
    terms = loss.compute_scale_terms(y, scores).tolist()
    quantile = loss.quantile if isinstance(loss, HuberLoss) else None
    expected = reference.compute_scale_of_terms(terms, quantile)
    for ends in ([0, n], [0, 0, n // 3, n], [*range(n + 1)]):
        assert _compute_loss_scale(Blocks(y, offset, ends), loss, START) == expected
    literal = reference.compute_loss_scale(loss.name, loss.parameter, y, scores[0])
    assert expected == pytest.approx(literal, rel=1e-9)


def test_infinite_terms_have_an_infinite_scale():
    y, offset = np.array([1.0, 2.0]), np.array([[0.0, 5000.0]])
    loss = TweedieLoss(power=1.4)
    assert _compute_loss_scale(Blocks(y, offset, [0, 1, 2]), loss, START) == np.inf
