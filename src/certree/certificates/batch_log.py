"""Names of the batches that were added to a monitor or to adaptive intervals, and of their model.

A batch that was added before is refused, and so is one whose predictions are another model's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from certree.interface.formatting import escape_controls
from certree.interface.stored_fields import StoredField
from certree.interface.stored_state import DamagedModelError, StoredState

_MOST_CHARACTERS = 100


class BatchLog:
    """The named batches of rows that were added, with the numbers of their rows, from 1.

    It has no parameters, and starts without batches.
    """

    def __init__(self) -> None:
        self._rows: dict[str, tuple[int, int]] = {}

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the batches, in the order in which they were added."""
        return iter(self._rows)

    def check(self, batch: str | None, model_hash: str | None, expected: str | None) -> None:
        """Raise ValueError if a batch was added before, or another model predicted its rows.

        batch: name of the batch, or None; model_hash: hash of the model of its predictions, or
        None; expected: hash that this must be, None: any. Raise TypeError if a name or hash is not
        text.
        """
        if model_hash is not None:
            check_text("model_hash", model_hash)
        if expected is not None and model_hash != expected:
            raise ValueError(
                f"model_hash must be that of the monitored model, {expected}, got "
                f"{model_hash}: pass predictions of this model only, and monitor each model by an "
                "object of its own"
            )
        if batch is None:
            return
        check_text("batch", batch)
        if batch in self._rows:
            first, last = self._rows[batch]
            rows = f"as rows {first:,} to {last:,}" if last >= first else "without rows"
            raise ValueError(
                f"batch must be new, but {batch!r} was added before, {rows}: pass each batch once, "
                "and give another batch another name"
            )

    def add(self, batch: str | None, n_before: int, n_rows: int) -> None:
        """Add a batch of rows to this log; a batch without a name is not logged.

        batch: its name, or None; n_before: number of rows of all earlier batches; n_rows: number of
        its rows, which get the numbers n_before + 1, n_before + 2, ...
        """
        if batch is not None:
            self._rows[str(batch)] = (n_before + 1, n_before + n_rows)

    def locate(self, row: int, word: str = "row") -> str:
        """Return the number of a row with the name of its batch, such as "row 12 (batch 'May')".

        row: number of the row since the first batch, from 1; word: what the message calls a row,
        such as "group".
        """
        text = f"{word} {row:,}"
        for name, (first, last) in self._rows.items():
            if first <= row <= last:
                return f"{text} (batch {escape_controls(name)!r})"
        return text

    def fits(self, n_rows: int) -> bool:
        """Return whether all row numbers in this log are between 1 and `n_rows`.

        A file is damaged if they are not. n_rows: number of rows that all batches together have.
        """
        return all(1 <= first <= last + 1 <= n_rows + 1 for first, last in self._rows.values())

    @classmethod
    def make_stored_field(cls, attribute: str) -> StoredField:
        """Return how model files store an attribute that holds a log of batches.

        A file stores the log as a list with one entry [name, number of the first row, number of the
        last row] for each batch. attribute: name of the attribute, such as "_batches". The
        `StoredField` writes the list and restores the log from it.
        """
        return StoredField(
            attribute,
            _restore_log,
            lambda log, _: [[name, *rows] for name, rows in log._rows.items()],
        )


def check_text(name: str, text: Any) -> None:
    """Raise TypeError or ValueError unless an argument is printable text of 1 to 100 characters.

    name: name of the argument, for the message; text: its value.
    """
    if not isinstance(text, str):
        raise TypeError(f"{name} must be text, got {text!r}")
    if not text.isprintable() or not 1 <= len(text) <= _MOST_CHARACTERS:
        raise ValueError(
            f"{name} must be printable text of 1 to {_MOST_CHARACTERS} characters, got {text[:200]!r}"
        )


def _restore_log(stored: StoredState, name: str, model: Any) -> BatchLog:  # noqa: ARG001 -- as others
    """Read the `BatchLog` of a model file.

    stored, name: the content of the file, and the name of the entry in it; model: the object that
    is restored, not used. Raise ValueError or TypeError if the entry is not a list of [name, number
    of the first row, number of the last row], or a name is no valid text or repeats.
    """
    log = BatchLog()
    for batch, *rows in stored[name]:
        check_text(name, batch)
        if [*map(type, rows)] != [int, int] or batch in log._rows:
            raise DamagedModelError(
                f"the model file's {name} must have entries [name, first row, last row], each name "
                f"once, got {[batch, *rows]!r}"
            )
        log._rows[batch] = (rows[0], rows[1])
    return log
