"""What TabArena's registry and leaderboard state about certree."""

from tabarena.models._method_metadata import MethodMetadata
from tabarena.models._model_info import ModelInfo
from tabarena.models.certree.hpo import gen_certree
from tabarena.models.certree.model import CertreeModel

certree_method_metadata = MethodMetadata.config(
    method="certree",
    display_name="certree",
    compute="cpu",
    date="2026-12-01",
    ag_key=CertreeModel.ag_key,
    model_key="CERTREE",
    config_default="certree_c1_default_BAG_L1",
    can_hpo=True,
    is_bag=True,
    has_raw=True,
    has_processed=True,
    has_results=True,
    suite="tabarena-2026-12-01",
    verified=False,
)

certree_info = ModelInfo(
    model_cls=CertreeModel,
    search_space=gen_certree,
    method_metadata=certree_method_metadata,
    pip_extra=("certree==0.1.0",),
)
