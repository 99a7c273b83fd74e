"""The report of a fitted model: one page that holds all it needs."""

from certree.show.page.writing import report

__all__ = ["report"]
