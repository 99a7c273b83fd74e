"""Pictures; they need matplotlib, which ``pip install "certree[plot]"`` brings."""

from certree.show.curves import plot_figure2, plot_rates, plot_table2
from certree.show.loss import plot_loss
from certree.show.training_error import plot_adaboost
from certree.show.tree_picture import plot_tree

__all__ = ["plot_adaboost", "plot_figure2", "plot_loss", "plot_rates", "plot_table2", "plot_tree"]
