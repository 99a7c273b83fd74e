"""The HTML report about a fitted model: one file without external resources."""

from certree.show.page.report_page import report

__all__ = ["report"]
