"""What trees compute over bits, as polynomials: exact spectra, and learning them."""

from certree.boolean.bits import Bits
from certree.boolean.models import spectrum
from certree.boolean.spectrum import Spectrum

__all__ = ["Bits", "Spectrum", "spectrum"]
