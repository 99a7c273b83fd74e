"""The search space of boosted trees in TabArena."""

from autogluon.common.space import Categorical, Int, Real
from tabarena.models.certree.model import CertreeModel
from tabarena.utils.config_utils import ConfigGenerator

search_space = {
    "learning_rate": Real(0.02, 0.2, default=0.1, log=True),
    "max_leaf_nodes": Int(8, 128, default=31),
    "min_samples_leaf": Int(1, 40, default=5),
    "l2_regularization": Real(0.5, 30.0, default=2.5, log=True),
    "subsample": Real(0.5, 0.95, default=0.75),
    "max_features": Categorical("auto", "sqrt", 0.3, 0.6),
    "max_thresholds": Categorical("auto", 8, 32, None),
    "prunings": Categorical("vote", "none"),
}

gen_certree = ConfigGenerator(
    model_cls=CertreeModel, search_space=search_space, manual_configs=[{}]
)
