"""A model folder of TabArena. Its modules `model`, `hpo` and `info` import TabArena and AutoGluon."""
