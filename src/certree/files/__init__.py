"""Model files, which contain no code, and tables in files."""

from certree.files.models import load, save
from certree.files.predictions import predict_files

__all__ = ["load", "predict_files", "save"]
