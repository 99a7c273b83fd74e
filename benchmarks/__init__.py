"""Timings of certree against its peers: `python -m benchmarks.<name>`."""
