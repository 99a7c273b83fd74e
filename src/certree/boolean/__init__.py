"""What trees compute over bits, as polynomials: exact spectra, fewer terms, and learning them."""

from certree.boolean.bits import Bits
from certree.boolean.estimators import FourierClassifier, FourierRegressor
from certree.boolean.hashed import sparse_transform
from certree.boolean.kushilevitz_mansour import kushilevitz_mansour
from certree.boolean.low_degree import LowDegree, low_degree
from certree.boolean.queries import Recovered
from certree.boolean.recovery import SparseRecovery, sparse_recovery
from certree.boolean.sparsify import Sparsified, held_out_error, sparsify, sparsify_as_proven
from certree.boolean.spectra_of_models import spectrum
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
