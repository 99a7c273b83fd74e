"""Answers of the library as hashes: `python -m benchmarks.answers`."""
