"""The wrapper of boosted trees for the TabArena benchmark, and its protocol on the shared tables.

`certree` is the folder of a model in TabArena's repository, and `PULL_REQUEST.md` the text of the
pull request that adds it there. `bagging.py` runs the protocol without their package.
"""
