"""Rows that lie in parts: in files on one machine, or in the memory of many.

What is known of all rows is made of what each part tells: whole sums, largest numbers, smallest hashes
and counts, which are the same however the rows are divided. So a fit on parts gives the model of the
same rows in one array, bit by bit.
"""

from certree.parts.resources import resources

__all__ = ["resources"]
