"""What a type checker knows of a user's code; `make check` asks mypy."""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import certree
from certree.certificates import Certificate

X, y = np.zeros((2, 1)), np.array([0, 1])

boosted = certree.BoostedTreesClassifier(max_iter=3).fit(X, y)
assert_type(boosted, certree.BoostedTreesClassifier)
assert_type(boosted.predict_proba(X), NDArray[np.float64])
assert_type(certree.CertifiedTreeClassifier().fit(X, y).certificate_, Certificate)
assert_type(certree.TreeForestRegressor().fit(X, y), certree.TreeForestRegressor)
assert_type(certree.AdaBoostTreeClassifier().fit(X, y), certree.AdaBoostTreeClassifier)
assert_type(certree.PACBayesTreeRegressor().fit(X, y), certree.PACBayesTreeRegressor)
assert_type(certree.NaiveBayesClassifier().partial_fit(X, y, [0, 1]), certree.NaiveBayesClassifier)
assert_type(certree.boolean.FourierRegressor().fit(X, y), certree.boolean.FourierRegressor)
assert_type(certree.certify(boosted, X, y), Certificate)
assert_type(boosted.fit(X, y).predict(X), NDArray[Any])
certree.show.plot_tree(certree.PrunedTreeClassifier().fit(X, y))
