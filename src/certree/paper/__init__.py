"""The paper by Nguyen and Kpotufe that introduced the vote: its theory, and its experiment repeated.

`protocol` runs the experiment; `table1`, `table2` and `figure2` summarise its results. `rates`
simulates how fast the error of prunings approaches the Bayes error. `theory` and `excess` have bounds
that need the true distribution, which is known in simulations only, so they are not certificates. No
other package imports this one, except the command line.
"""

from certree.paper.curves import plot_figure2, plot_rates, plot_table2
from certree.paper.excess import (
    OracleBound,
    excess_bound,
    excess_posterior,
    gibbs_excess_bound,
    oracle_excess,
)
from certree.paper.theory import (
    chernoff_oracle_bound,
    deviation_limit,
    deviation_penalty,
    hoelder_rate,
    resolvability,
    theorem_bound,
)

# fmt: off
__all__ = [
    "OracleBound", "chernoff_oracle_bound", "deviation_limit", "deviation_penalty",
    "excess_bound", "excess_posterior", "gibbs_excess_bound", "hoelder_rate", "oracle_excess",
    "plot_figure2", "plot_rates", "plot_table2", "resolvability",
    "theorem_bound",
]
# fmt: on
