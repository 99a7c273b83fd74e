"""Files: models without code, and tables."""

from certree.files.models import load, save
from certree.files.predictions import predict_files

__all__ = ["load", "predict_files", "save"]
