"""Results of the library as hashes, to find changes of bits: `python -m benchmarks.answers`."""
