"""What all packages share: checks of arguments, the state of fitted models, files and printed output.

`arrays`, `signatures` and `parameter_aliases` check arguments; `fitted` and `stored_state` hold the
state of fitted models; `extras` imports optional packages; `progress`, `notebook` and `formatting`
make output; `atomic_write` writes files; `threads` interprets `n_jobs`; `docstrings` copies
descriptions of parameters from one docstring to others.
"""
