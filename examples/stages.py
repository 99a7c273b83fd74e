"""The flow stage by stage, without an estimator: grow, count, weigh, vote, predict."""

import numpy as np
from sklearn.datasets import make_moons
from sklearn.model_selection import train_test_split

from certree import count, grow_kd, pac_bayes, vote
from certree.prunings import cost_complexity
from certree.weights import entropy, gibbs_risk, sample_pruning


def main() -> None:
    X, y = make_moons(4000, noise=0.35, random_state=0)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)

    tree = grow_kd(X_train, y_train)
    print(f"tree: {tree.n_nodes} nodes, {tree.n_leaves} leaves, depth {tree.depth}")

    stats = count(tree, X_train, y_train, n_classes=2)
    print(f"root: {stats.n[0]:g} rows, label {stats.label[0]}, {stats.errors[0]:g} errors")

    posterior = pac_bayes(tree, stats, lambda_error=0.5, lambda_penalty=0.1)
    print(
        f"posterior: {posterior.expected_leaves:.1f} leaves on average, "
        f"entropy {entropy(tree, posterior):.1f} nats, "
        f"training error of a random pruning {gibbs_risk(stats, posterior):.3f}"
    )

    # From here on, a law over all prunings and a single pruning are the same thing.
    prunings = {
        "all prunings vote": posterior,
        "one drawn from the law": sample_pruning(tree, posterior, rng=0),
        "best for a price of 2": cost_complexity(tree, stats, alpha=2.0),
        "the whole tree": cost_complexity(tree, stats, alpha=0.0),
    }
    leaf = tree.apply(X_test)
    for name, weights in prunings.items():
        outcome = vote(tree, stats, weights)
        error = np.mean(outcome.label[leaf] != y_test)
        print(f"{name:22}: {weights.expected_leaves:5.1f} leaves, test error {error:.3f}")


if __name__ == "__main__":
    main()
