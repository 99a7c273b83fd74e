"""What a model file holds of the certificates of a fit."""

from dataclasses import asdict
from typing import Any

from certree.certificates.certificate import restored_certificate
from certree.certificates.guarantees import Certified

ENTRIES_OF_CERTIFICATES = frozenset({"certificates", "deployed"})

# More than a fit makes.
_MOST_CERTIFICATES = 64


def entries_of_certificates(model: Certified) -> dict[str, Any]:
    """What goes into the header."""
    return {
        "certificates": [asdict(one) for one in model.certificates_],
        "deployed": model.certificates_.index(model.certificate_),
    }


def restore_certificates(model: Certified, header: dict[str, Any]) -> None:
    """Check certificates as far as they tell of themselves, and set them."""
    saved, deployed = header["certificates"], header["deployed"]
    if not isinstance(saved, list) or len(saved) > _MOST_CERTIFICATES:
        raise ValueError(f"expected a list of certificates, got {saved!r}")
    if type(deployed) is not int or not 0 <= deployed < len(saved):
        raise ValueError(f"deployed must be one of {len(saved)} certificates, got {deployed!r}")
    model.certificates_ = tuple(map(restored_certificate, saved))
    model.certificate_ = model.certificates_[deployed]
