"""Which rounds, and how many of them, serve rows that have no part in them."""

from collections.abc import Sequence
from itertools import chain

import numpy as np

from certree.ensembles.rounds import Rounds, advance

# Steps beyond are too long to tell how many shorter ones would serve.
_LONGEST = 0.5
# The loss is taken after so many rounds, then after a factor more each time.
_FIRST, _FACTOR = 3, 2**0.5
# After so many rounds it is known which kind of them will be best.
_RACE = 96
# It has stopped falling once it has not fallen for so many looks, of which those at fewer rounds are
# no evidence: features that tell something only together are not found at once.
_PATIENCE, _EARLIEST = 1, 40
# The first kind is left for another one that is better by this part: less is noise of the judges.
_MARGIN = 0.03


def longer_steps(learning_rate: float, most: int) -> int:
    """How many times as long the steps of runs are that choose the number of rounds, 4, 2 or 1."""
    return next((one for one in (4, 2) if one <= most and learning_rate <= _LONGEST / one), 1)


def best_rounds(kinds: Sequence[Sequence[Rounds]], most: int) -> tuple[int, int]:
    """The kind of rounds, and their number, after which the loss of its runs is smallest.

    Runs go on side by side until their loss has stopped falling; those of kinds that are behind
    stop earlier.

    Parameters
    ----------
    kinds : sequence of sequences of Rounds
        Runs of each kind, one for each fold; the first kind is that which others have to beat.
    most : int
        So many rounds at most.

    Returns
    -------
    kind : int
        Which of them.
    n_rounds : int
        Number of rounds, at least 1.
    """
    best, least, done, look, since = (0, 1), np.inf, 0, _FIRST, 0
    racing = [kind for kind, runs in enumerate(kinds) if runs]
    while racing and done < most and since < _PATIENCE:
        look = min(look, most)
        since += look >= _EARLIEST
        advance([*chain.from_iterable(kinds[kind] for kind in racing)], done, look)
        for kind in racing:
            loss = sum(float(run.losses[-1][-1]) for run in kinds[kind])
            loss *= 1 + _MARGIN if kind > 0 else 1
            if loss < least:
                best, least, since = (kind, look), loss, 0
        if look >= _RACE:
            racing = [best[0]]
        done, look = look, round(look * _FACTOR)
    return best
