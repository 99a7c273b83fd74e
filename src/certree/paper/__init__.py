"""The paper that the vote comes from: what its theory promises, and its experiment run again.

`protocol` runs the experiment, `table1`, `table2` and `figure2` say what came out, `rates`
simulates how fast prunings come close to the Bayes error. `theory` and `excess` hold bounds that
need the truth, which is known on simulated problems only: rates to learn and to test by, and no
certificates. No other room imports this one; the command line has its commands.
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
