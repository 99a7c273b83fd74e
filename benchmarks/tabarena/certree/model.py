"""Boosted trees of certree as a model of AutoGluon, which TabArena bags."""

from __future__ import annotations

import time
from typing import Any, ClassVar

from autogluon.core.models import AbstractModel
from tabarena.models.certree.fitting import fit_fold


class CertreeModel(AbstractModel):  # type: ignore[misc]  # their package has no types
    """Boosted trees in which all prunings of each tree vote, weighted on out-of-bag rows.

    Categories and missing values are passed on as they are. The validation rows of the fold end
    the rounds; there is no cross-validation within a fold.

    Paper: none; the vote follows Helmbold and Schapire, "Predicting nearly as well as the best
    pruning of a decision tree", Machine Learning 1997.
    Authors: the authors of certree.
    Codebase: the project's repository.
    License: that of the project, see its file LICENSE.
    """

    ag_key = "TA-CERTREE"
    ag_name = "TA-certree"
    ag_priority = 65
    seed_name = "random_state"
    _supported_problem_types: ClassVar[list[str]] = ["binary", "multiclass", "regression"]
    default_resources_physical_cores_only = True
    _default_auxiliary_params_extra: ClassVar[dict[str, Any]] = {
        "valid_raw_types": ["int", "float", "category"]
    }
    warmup_modules: ClassVar[tuple[str, ...]] = ("certree",)
    cheap_hyperparameters: ClassVar[dict[str, Any]] = {"max_iter": 2}

    def _fit(
        self,
        X: Any,
        y: Any,
        X_val: Any = None,
        y_val: Any = None,
        time_limit: float | None = None,
        num_cpus: int = 1,
        **kwargs: Any,  # noqa: ARG002 -- what else AutoGluon passes
    ) -> None:
        """Fit the model to one fold, and store its number of rounds for a refit to all rows."""
        begin, X = time.time(), self.preprocess(X, y=y, is_train=True)
        validation = None
        if X_val is not None and y_val is not None:
            validation = self.preprocess(X_val), y_val
        left = None if time_limit is None else time_limit - (time.time() - begin)
        about = self.problem_type, self._get_model_params(), (X, y), validation
        self.model = fit_fold(*about, time_limit=left, n_jobs=num_cpus)
        self.params_trained["max_iter"] = self.model.n_iter_

    def _set_default_params(self) -> None:
        """Set no parameters: those of certree follow the number of rows."""

    def _more_tags(self) -> dict[str, bool]:
        """Say that the model can be fitted again to all rows, with the rounds of the folds."""
        return {"can_refit_full": True}
