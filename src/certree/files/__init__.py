"""Files: models without code, and tables."""

from certree.files.models import load, save

__all__ = ["load", "save"]
