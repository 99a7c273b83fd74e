"""What type checkers know of a user's code; `make check` asks mypy and pyright."""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import certree
from certree.certificates import Certificate
from certree.ensembles import ConformalBandRegressor
from certree.explain import Explanation

# pyright is strict here; scikit-learn has no types of its own.
# pyright: strict, reportMissingTypeStubs=false

X, y = np.zeros((2, 1)), np.array([0, 1])

boosted = certree.BoostedTreesClassifier(max_iter=3).fit(X, y)
assert_type(boosted, certree.BoostedTreesClassifier)
assert_type(boosted.predict_proba(X), Any)  # of several columns of classes a list
assert_type(certree.CertifiedTreeClassifier().fit(X, y).certificate_, Certificate)
assert_type(certree.TreeForestRegressor().fit(X, y), certree.TreeForestRegressor)
assert_type(certree.AdaBoostTreeClassifier().fit(X, y), certree.AdaBoostTreeClassifier)
assert_type(certree.PACBayesTreeRegressor().fit(X, y), certree.PACBayesTreeRegressor)
assert_type(certree.NaiveBayesClassifier().partial_fit(X, y, [0, 1]), certree.NaiveBayesClassifier)
assert_type(certree.boolean.FourierRegressor().fit(X, y), certree.boolean.FourierRegressor)
assert_type(certree.certify(boosted, X, y), Certificate)
assert_type(certree.certificates.hold_out(3, 100), Certificate)
assert_type(certree.explain.Explanation, type[Explanation])
assert_type(boosted.fit(X, y).predict(X), NDArray[Any])
assert_type(boosted.predict(X=X, n_iter=2), NDArray[Any])
assert_type(boosted.set_params(max_iter=4), certree.BoostedTreesClassifier)
assert_type(boosted.n_iter_, int)
assert_type(boosted.explain(X), Explanation)
assert_type(boosted.importance("split"), NDArray[np.float64])
assert_type([*boosted.staged_predict_proba(X)], list[Any])
assert_type(boosted.to_sql("rows"), str)

numbers = certree.BoostedTreesRegressor(max_iter=3, standard_errors=True).fit(X, y)
assert_type(numbers, certree.BoostedTreesRegressor)
assert_type(numbers.predict_std(X), NDArray[np.float64])
bands = ConformalBandRegressor().fit(X, y)
assert_type(bands, ConformalBandRegressor)
assert_type(bands.predict_interval(X), NDArray[np.float64])
tree = certree.PACBayesTreeRegressor(certree.Cart(min_samples_leaf=2)).fit(X, y)
assert_type(tree.predict_std(X), NDArray[np.float64])
assert_type(tree.export_text(), str)
box = certree.Grid([[0.0], [1.0]])
pruned = certree.PrunedTreeClassifier(box, max_depth=2, alpha=1.0).fit(X, y)
assert_type(pruned.partial_fit(X, y, classes=[0, 1]).forget(X, y), certree.PrunedTreeClassifier)
assert_type(pruned.merge(pruned), certree.PrunedTreeClassifier)
ranker = certree.BoostedTreesRanker(max_iter=3).fit(X.tolist(), y.tolist(), group=[2])
assert_type(ranker, certree.BoostedTreesRanker)
certree.save(ranker, "ranker.certree")
certree.show.plot_tree(certree.PrunedTreeClassifier().fit(X, y))
