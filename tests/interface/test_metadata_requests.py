"""Methods that request metadata have short docstrings, and do what those of scikit-learn do."""

import sklearn

from certree import BoostedTreesClassifier, CertifiedTreeClassifier


def test_request_methods_have_short_docstrings():
    for kind in (BoostedTreesClassifier, CertifiedTreeClassifier):
        method = kind.set_fit_request
        assert "passes to `fit`" in method.__doc__
        assert len(method.__doc__.splitlines()) <= 4


def test_requests_are_those_of_scikit_learn():
    with sklearn.config_context(enable_metadata_routing=True):
        model = BoostedTreesClassifier()
        assert model.set_fit_request(sample_weight=True) is model
        assert model.get_metadata_routing().fit.requests["sample_weight"] is True
