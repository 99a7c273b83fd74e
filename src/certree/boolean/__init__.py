"""Trees over bits as polynomials: exact spectra, sparsification, and learning from data."""

from certree.boolean.bits import Bits
from certree.boolean.estimators import FourierClassifier, FourierRegressor
from certree.boolean.kushilevitz_mansour import kushilevitz_mansour
from certree.boolean.low_degree import LowDegree, low_degree
from certree.boolean.model_spectrum import spectrum
from certree.boolean.query_counter import Recovered
from certree.boolean.recovery import SparseRecovery, sparse_recovery
from certree.boolean.sparse_transform import sparse_transform
from certree.boolean.sparsify import Sparsified, held_out_error, sparsify, sparsify_as_proven
from certree.boolean.spectrum import Spectrum
from certree.boolean.transform import spectrum_of_values, walsh_hadamard

__all__ = [
    "Bits",
    "FourierClassifier",
    "FourierRegressor",
    "LowDegree",
    "Recovered",
    "SparseRecovery",
    "Sparsified",
    "Spectrum",
    "held_out_error",
    "kushilevitz_mansour",
    "low_degree",
    "sparse_recovery",
    "sparse_transform",
    "sparsify",
    "sparsify_as_proven",
    "spectrum",
    "spectrum_of_values",
    "walsh_hadamard",
]
