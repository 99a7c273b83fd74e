"""The HTML report and the model card of a fitted model: one file without external resources."""

from certree.show.page.model_card import model_card
from certree.show.page.report_page import report

__all__ = ["model_card", "report"]
