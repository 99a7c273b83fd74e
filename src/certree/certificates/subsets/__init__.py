"""What is promised of parts of the rows at once: leaves, classes, groups, sets and bands.

`families` certifies parts, `answers` says which there are and what went wrong in each, `coverage`
which order statistic of scores holds a share of new rows, in each region for itself.
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
