"""Growing T0: one module per partition, each with a function ``grow_...(X, y, ...) -> Tree``."""
