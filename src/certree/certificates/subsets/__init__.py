"""Guarantees on subsets of the rows: leaves, classes, groups, prediction sets and prediction intervals.

`families` certifies the error in subsets, `row_subsets` counts the rows and errors in each, and
`coverage` finds the order statistic of conformity scores that covers a fraction of new rows.
"""

from certree.certificates.subsets.coverage import PredictionIntervals, Scores, place_to_cover
from certree.certificates.subsets.families import CertificateFamily, ConditionalGuarantees

__all__ = [
    "CertificateFamily",
    "ConditionalGuarantees",
    "PredictionIntervals",
    "Scores",
    "place_to_cover",
]
