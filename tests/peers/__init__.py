"""scikit-learn's own tests of boosting, forests and trees, run with certree's estimators.

`python -m benchmarks.peers` runs them and says what fails, and by which cause.
"""
