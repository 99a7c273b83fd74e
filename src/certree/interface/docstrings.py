"""Docstrings that take the descriptions of parameters and attributes from other docstrings.

Each description is written once, in the docstring of the first class or function of its family. All
others hold its name in braces, as in ``{max_depth} {n_jobs}``, on lines without further text.
"""

import inspect
import re
from collections import ChainMap
from collections.abc import Callable
from functools import cache
from textwrap import indent
from typing import Any, TypeVar

_T = TypeVar("_T", bound=Callable[..., Any])

# A name with its type, then the indented lines below; and a line of names in braces.
_DESCRIPTION = re.compile(r"^(\w[\w, ]*) : .*(?:\n+ .*)*", re.MULTILINE)
_PLACEHOLDERS = re.compile(r"^( *)(\{\w[\w, ]*\}(?: \{\w[\w, ]*\})*)$", re.MULTILINE)


def copy_descriptions_from(*sources: Any) -> Callable[[_T], _T]:
    """Decorate a class or function: replace names in braces in its docstring by their descriptions.

    Parameters
    ----------
    *sources : class or function
        Objects whose docstrings have the descriptions. Each description is that of the first source
        that has one of this name. Names described together are one name, as in ``{X_val, y_val}``.

    Returns
    -------
    callable
        The decorator, which changes the docstring and returns the same object. It raises ValueError
        if no source describes a name. With ``python -OO`` there are no docstrings, and it does
        nothing.
    """

    def decorate(documented: _T) -> _T:
        if documented.__doc__:
            known = ChainMap(*map(_read_descriptions, sources))

            def write_descriptions(placeholders: re.Match[str]) -> str:
                margin, names = placeholders.groups()
                found = [known.get(name) for name in names[1:-1].split("} {")]
                if None in found:
                    raise ValueError(
                        f"the docstring of {documented.__qualname__} must name descriptions of "
                        f"{', '.join(source.__qualname__ for source in sources)}, got {names}"
                    )
                return indent("\n".join(filter(None, found)), margin)

            documented.__doc__ = _PLACEHOLDERS.sub(write_descriptions, documented.__doc__)
        return documented

    return decorate


@cache
def _read_descriptions(source: Any) -> dict[str, str]:
    """Return the descriptions of parameters and attributes in the docstring of `source`, by name.

    source: a class or function. Each description begins with the name and its type, without
    indentation. If a name has several, such as a parameter and a result, the first is returned.
    """
    found = _DESCRIPTION.finditer(inspect.getdoc(source) or "")
    return {description[1]: description[0] for description in reversed([*found])}
