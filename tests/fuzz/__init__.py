"""The fuzzer: hostile arguments for everything public, at random but by a seed.

``python -m fuzz --seconds 60`` in this folder's parent runs cases one after the other and says which
ones found something; ``--case 1234`` runs one of them again. A case is its number: it draws plausible
arguments that belong together (`world.py`), spoils some of them (`hostile.py`) and calls something
public (`functions.py`, `models.py`, `files.py`). It finds something if that crashes, hangs, warns,
raises what is no ValueError or TypeError or speaks of internals, or gives another answer than the slow
twin (`twins.py`).

Other cases fit an estimator to a table of any kinds of values (`tables.py`), and ask the same in two
ways that must agree: of one fit (`relations.py`), of two to rows that say the same (`refits.py`), of
the model and an engine that has its export (`exports.py`), and before and after a call that was stopped
(`interrupts.py`; where the core has no hook, a timer stops it at another place each time).
"""
