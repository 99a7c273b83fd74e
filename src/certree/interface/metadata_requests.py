"""Short docstrings of the methods with which scikit-learn requests metadata, such as weights."""

from __future__ import annotations

from typing import Any

from sklearn.utils._metadata_requests import RequestMethod


class _ShortRequestMethod(RequestMethod):
    """A method ``set_{method}_request`` of scikit-learn with a docstring of two sentences.

    The constructor is that of scikit-learn's RequestMethod: name of the method, such as "fit",
    names of its arguments, such as "sample_weight", and whether to check these names.
    """

    def __get__(self, instance: Any, owner: Any) -> Any:
        function = super().__get__(instance, owner)
        function.__doc__ = (
            f"Choose which arguments a meta-estimator passes to `{self.name}`, and return self.\n\n"
            "Each value is True, False, None or an alias; see scikit-learn's metadata routing.\n"
        )
        return function


def shorten_request_docs(cls: type) -> None:
    """Shorten the docstrings of the methods ``set_{method}_request`` that a class defines.

    cls: the class, to which scikit-learn has added the methods; they are replaced. Methods that it
    inherits are not changed.
    """
    for name, method in [*vars(cls).items()]:
        if isinstance(method, RequestMethod):
            setattr(cls, name, _ShortRequestMethod(method.name, method.keys, method.validate_keys))
