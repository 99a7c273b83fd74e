"""How fast the error of prunings falls with the rows: exponents of log n / n, as in `certree rates`.

Four rules, Lipschitz and smooth boundaries, two and three features, no noise; three samples of every
power of two from 2^8 to 2^17 rows, of the seeds (repetition, rows, features). Exponents are fitted to
the larger half of the sizes. Writes results/rates.csv; takes some minutes.
"""

import argparse

from benchmarks.records import RESULTS, store
from certree.paper.rates import DIMENSIONS, rates, simulate

POWERS, REPEATS = (8, 17), 3


def main() -> None:
    """Simulate, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--powers", type=int, nargs=2, default=POWERS)
    least, most = parser.parse_args().powers
    sizes = [2**power for power in range(least, most + 1)]
    rows = [
        {
            "features": one.dimension,
            "boundary": one.boundary,
            "rule": one.rule,
            "theory": f"{one.theory:.4g}",
            "exponent": f"{one.fitted.value:.4g}",
            "standard_error": f"{one.fitted.standard_error:.4g}",
            "excess": f"{one.excess[-1].value:.4g}",
            "rows": one.rows[-1],
        }
        for one in rates(simulate(DIMENSIONS, sizes, REPEATS, n_jobs=1))
    ]
    for row in rows:
        print(*row.values())
    store(RESULTS / "rates.csv", rows)


if __name__ == "__main__":
    main()
