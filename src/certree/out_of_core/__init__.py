"""Fits to rows that are not one array in memory: files on disk, or collections of a Dask cluster.

Rows are processed block by block. Results of the blocks are combined by order-independent
reductions: exact sums, maxima, hashes and counts. So such a fit gives the same model, bit by bit,
as a fit to the same rows in one array.
"""

from certree.out_of_core.plan import FitPlan, plan_fit
from certree.out_of_core.resources import resources

__all__ = ["FitPlan", "plan_fit", "resources"]
