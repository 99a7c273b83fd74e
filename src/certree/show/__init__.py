"""Figures of models, the HTML report and the model card.

Figures and the report need matplotlib: ``pip install "certree[plot]"``.
"""

from certree.show.calibration import plot_calibration
from certree.show.certificate_picture import plot_certificate
from certree.show.importance import plot_importance
from certree.show.interactions_picture import plot_interactions
from certree.show.loss import plot_loss
from certree.show.monitor_picture import plot_monitor
from certree.show.page import model_card, report
from certree.show.ranking import plot_ranking
from certree.show.region_picture import plot_regions
from certree.show.selective_picture import plot_selective
from certree.show.threshold_picture import plot_thresholds
from certree.show.training_error import plot_adaboost
from certree.show.tree_picture import plot_tree
from certree.show.waterfall import plot_explanation

# fmt: off
__all__ = [
    "model_card", "plot_adaboost", "plot_calibration", "plot_certificate", "plot_explanation",
    "plot_importance", "plot_interactions", "plot_loss", "plot_monitor", "plot_ranking",
    "plot_regions", "plot_selective", "plot_thresholds", "plot_tree", "report",
]
# fmt: on
