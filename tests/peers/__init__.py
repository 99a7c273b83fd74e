"""scikit-learn's own tests of boosting, forests and trees, run with certree's estimators in place of its.

`python -m benchmarks.peers` runs them and says what fails, and by which cause.
"""
