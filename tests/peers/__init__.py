"""scikit-learn's own tests of boosting, forests and trees, run with certree's estimators.

In this folder's parent, this command writes the outcome and the cause of each test to found.json:

    PEERS_FOUND=found.json PYTHONPATH=. python -m pytest -p peers.drop_in -p no:randomly \\
        --pyargs sklearn.tree.tests.test_tree
"""
