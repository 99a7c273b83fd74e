"""Certificates: what is promised about errors on new rows, with which probability, and why."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from decimal import ROUND_CEILING, Context
from typing import Any

from certree.certificates.methods import (
    METHODS,
    get_inequality,
)
from certree.certificates.shift import Monitor, Shift, make_shift
from certree.interface.formatting import format_bound, format_confidence
from certree.interface.notebook import make_html_table
from certree.interface.signatures import validate_arguments, validate_settings
from certree.interface.stored_state import StoredState
from certree.rows.near_copies import NearCopies, restore_near_copies

# More than anybody has; numbers of doubles above would not be told apart from their neighbours.
_MOST_ROWS = 2**50
_ROUNDING = 1e-9
# More than a fit has had; a bound of even more takes long to compute.
_MOST_RESTORED = 10**9
# More than a fit makes.
_MOST_CERTIFICATES = 64
# Digits that are printed of numbers in units of the target; a promise is rounded up.
_DIGITS = Context(prec=4, rounding=ROUND_CEILING)


@dataclass(frozen=True, slots=True)
class Breakdown:
    """What a bound is made of; the three sum to it.

    Parameters
    ----------
    observed : float
        The bound that would be left with ever more rows like these.
    complexity : float
        What is added as the rows have chosen among many prunings.
    confidence : float
        What is added as the rows are few and `delta` is small.
    """

    observed: float
    complexity: float
    confidence: float


@dataclass(frozen=True, slots=True)
class Matches:
    """Rows whose features occur in the fit.

    Parameters
    ----------
    found : int
        How many do.
    expected : float or None
        How many of as many new rows are expected to, by how often rows of the fit repeat; None: the
        model does not know.
    """

    found: int
    expected: float | None

    @property
    def statement(self) -> str:
        """Both numbers in words."""
        if self.expected is None:
            return (
                f"{self.found:,} rows match rows of the fit; whether new rows would was not checked, "
                "as the model does not know how often rows of its fit repeat"
            )
        return (
            f"{self.found:,} rows match rows of the fit, where about {self.expected:,.3g} are expected "
            "of new rows"
        )


@dataclass(frozen=True, slots=True)
class Certificate:
    """An upper bound on the error on new rows, with all that it rests on.

    Parameters
    ----------
    method : str
        Row of `METHODS`.
    bound : float
        The error is at most this: a share, or a number in units of the target.
    delta : float
        Probability with which the promise may fail, over the draw of the rows.
    share : float
        Share of delta that this entry uses up.
    n : int
        Independent observations: rows, or groups of them.
    risk : float
        Error on these rows of what the certificate speaks about, in the same units.
    observed : tuple of float
        The observed numbers that enter the inequality; of errors of a target shares of `unit`.
    complexity : float
        Divergence from the prior, or minus the log of a prior mass (nats).
    grouped : bool
        Whether the observations are groups of rows.
    repeats : int or None
        How many of the rows are like a row of the fit, or like another one of these, and are taken for
        draws of their own; None: the rows were not compared with those of the fit.
    part : str
        Name of the part of the rows that it speaks about; empty: all of them.
    shift : Shift or None
        How far the source of new rows may be from that of these; None: it is the same.
    unit : float or None
        Of a promise about numbers the largest error that counts, in units of the target, as bound and
        risk are; larger ones count as that. None: losses are errors, 0 or 1.
    distinct : bool
        Whether rows that are alike are taken for copies of one, which counts once.
    matches : Matches or None
        Rows whose features occur in the fit; None: none do, or they were not compared with it.
    worst : int
        How many of the rows repeat others, or rows of the fit, and count as the worst case: as errors,
        and outside of their sets or bands. That is right whatever they are.
    near_copies : NearCopies or None
        What a comparison of the rows with training samples beyond equality has found; None: there was
        none. Certificates may be equal whatever it found.
    """

    method: str
    bound: float
    delta: float
    share: float
    n: int
    risk: float
    observed: tuple[float, ...]
    complexity: float
    grouped: bool = False
    repeats: int | None = 0
    part: str = ""
    shift: Shift | None = None
    unit: float | None = None
    distinct: bool = False
    matches: Matches | None = None
    worst: int = 0
    near_copies: NearCopies | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        validate_settings(self)
        if not 0 <= self.bound <= self._largest_bound:
            raise ValueError(f"bound must lie in 0 .. {self._largest_bound:g}, got {self.bound!r}")

    def __repr__(self) -> str:
        # One of several in a row of them; the sentence says it all.
        names = ("method", "bound", "risk", "n", "delta", *(["part"] if self.part else []))
        said = (f"{name}={getattr(self, name)!r}" for name in names)
        return f"Certificate({', '.join(said)}, ...)"

    @property
    def _largest_bound(self) -> float:
        """The largest bound."""
        return 1.0 if self.unit is None else self.unit

    @property
    def about(self) -> str:
        """What the certificate speaks about."""
        return METHODS[self.method].subject

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold for the promise to hold."""
        units = "groups of rows" if self.grouped else "distinct rows" if self.distinct else "rows"
        drawn = f"{units} are drawn independently, from the source that new ones come from"
        if self.shift is not None:
            drawn = f"{units} are drawn independently; {self.shift.assumption}"
        near = () if self.near_copies is None else self.near_copies.assumptions
        return drawn, *self._duplicate_assumptions, *near, METHODS[self.method].needs

    @property
    def _duplicate_assumptions(self) -> tuple[str, ...]:
        """What must hold for rows that are alike."""
        told = []
        if self.distinct:
            told.append(
                "rows of that source never coincide, and each that was drawn is in the table"
            )
        elif self.repeats and not self.worst:
            told.append("rows that are alike are draws of their own, not copies")
        if self.worst:
            told.append(
                f"{self.worst:,} rows repeat others and count as the worst case, which is right "
                "whether they are draws or copies"
            )
        if self.matches is not None:
            told.append(self.matches.statement)
        return tuple(told)

    @property
    def log_delta(self) -> float:
        """Log of the probability with which this entry may fail."""
        return math.log(self.delta * self.share)

    @property
    def parts(self) -> Breakdown:
        """How much of the bound is observed error, complexity and confidence."""
        observed = self._limit
        alone = self._recompute_bound(self.n, 0.0)
        return Breakdown(observed, self.bound - alone, alone - observed)

    @property
    def _limit(self) -> float:
        """The bound that ever more rows like these would leave."""
        limit = min(max(get_inequality(self.method).limit(*self.observed), 0.0), 1.0)
        return self._largest_bound * shift_bound(limit, self.shift)

    def _recompute_bound(self, n: int, complexity: float) -> float:
        """The bound with another number of rows or another complexity."""
        bound = get_inequality(self.method).bound
        return self._largest_bound * shift_bound(
            bound(*self.observed, n, complexity, self.log_delta), self.shift
        )

    def bound_by(self, n: int) -> float:
        """The bound that other new rows would give, if error and complexity stayed as they are.

        Parameters
        ----------
        n : int
            How many rows (or groups).

        Returns
        -------
        float
            To plan by: it promises nothing.
        """
        return self._recompute_bound(n, self.complexity)

    def at(self, delta: float) -> "Certificate":
        """The same promise with another probability, fixed without the rows, with which it may fail."""
        kept = ("risk", "part", "shift", "unit")
        rest = {name: getattr(self, name) for name in kept} | get_sampling_facts(self)
        entries = self.method, self.observed, self.n, self.complexity
        return compute_certificate(*entries, delta, self.share, **rest)

    def nearby(
        self, *, kl: float | None = None, total_variation: float | None = None
    ) -> "Certificate":
        """The same promise for every source of new rows that is near enough to this one.

        Of a promise on a part of the rows, such as those of one class, it is the source of that part
        that may be another one. It costs no delta, and distances may be chosen after looking.

        Parameters
        ----------
        kl : float or None
            The source of these rows diverges from that of new ones by at most so many nats, KL(this ||
            new). For KL(new || this) at most ``kl`` the largest r with ``kl(r, bound) <= kl`` would be
            the bound, which is close to this one where both are small.
        total_variation : float or None
            No event has a probability that differs by more than this between the two sources.

        Returns
        -------
        Certificate
            With the largest error that a source so near may have.

        Raises
        ------
        ValueError
            If not one of the two is given, it is out of range, the promise speaks of another source
            already, or is one about a gap.

        References
        ----------
        The data processing inequality: Cover and Thomas, "Elements of information theory", 2006,
        Section 2.8.

        Examples
        --------
        >>> from certree.certificates import hold_out
        >>> certificate = hold_out(errors=30, n=1000)
        >>> round(certificate.bound, 4), round(certificate.nearby(kl=0.01).bound, 4)
        (0.0405, 0.0746)
        """
        shift = make_shift(kl, total_variation)
        if self.shift is not None:
            raise ValueError("the certificate speaks of another source already")
        self._check_single_error("a source nearby")
        return replace(
            self,
            bound=self._largest_bound * shift_bound(self.bound / self._largest_bound, shift),
            shift=shift,
        )

    def monitor(self, alpha: float = 0.05) -> Monitor:
        """Watch over the promise while labelled rows come in.

        Parameters
        ----------
        alpha : float
            Probability with which the monitor may call a promise broken that is kept, however long it
            watches and at whatever time one looks.

        Returns
        -------
        Monitor
            Feed it the losses of new rows, in shares of `unit` where there is one; it has seen none so
            far.

        Raises
        ------
        ValueError
            If the bound is 1, which no row can break, the promise is one about a gap, or `alpha` is out
            of range.
        """
        self._check_single_error("a monitor")
        return Monitor(self.bound / self._largest_bound, alpha)

    def _check_single_error(self, what: str) -> None:
        if get_inequality(self.method).difference:
            raise ValueError(
                f"{what} takes a promise about one error, and {self.method} is about the difference "
                "of two"
            )

    def n_samples_needed(self, target: float) -> int | None:
        """Count the *new* rows (or groups) that would bring the bound down to a target.

        If error and complexity stayed as they are. All of them must be new: to add some to these and to
        certify by all is another look at the same rows, which `certify` takes as ``look=2``.

        Parameters
        ----------
        target : float
            The bound wanted.

        Returns
        -------
        int or None
            None if no number of rows is enough, as the observed error alone is too high or as good
            as the target.
        """
        if target <= self._limit:
            return None

        def enough(n: int) -> bool:
            return bool(self.bound_by(n) <= target)

        below, above = 0, 1
        while not enough(above):
            below, above = above, 2 * above
            if above > _MOST_ROWS:
                return None
        while above - below > 1:
            middle = (below + above) // 2
            below, above = (below, middle) if enough(middle) else (middle, above)
        return above

    def __str__(self) -> str:
        """The promise as a sentence."""
        method = METHODS[self.method]
        rows, where = (words.format(part=self.part) for words in (method.rows, method.where))
        rows = f"distinct {rows}" if self.distinct else rows
        units = f"groups of {rows}" if self.grouped else rows
        given = f"{rows}, out of rows" if self.part else "rows given,"
        if self.repeats is None:
            units = f"{given} which were not compared with those of the fit"
        elif self.repeats:
            # Each voter of an ensemble is judged by some of the rows, of which all are meant.
            of_which = f"{rows}, where" if " or more " in rows else f"{given} of which"
            units = f"{of_which} {self.repeats:,} repeat other rows, as draws of their own"
            if self.worst:
                units = f"{of_which} {self.worst:,} repeat other rows and count as the worst case"
        source = "the same source"
        if self.shift is not None:
            source, units = self.shift.source, units + self.shift.kept
        new = f"new rows{where} from {source}"
        if self.grouped:
            losses = "share of errors" if self.unit is None else "mean"
            new = f"new groups from {source}, the mean over groups of each group's {losses},"
        subject = method.subject
        if self.unit is not None and not get_inequality(self.method).whole_errors:
            subject += f" (one beyond {self.unit:.4g} counts as that)"
        observed = f"observed on them: {self._observed}" if self.n else "there are none"
        return (
            f"With probability at least {format_confidence(self.delta)} over the draw of the "
            f"{self.n:,} {units}, {subject} on {new} is at most "
            f"{self.promised} ({observed}; method: {self.method})."
        )

    @property
    def promised(self) -> str:
        """The bound in words, rounded up: a promise must not become stronger in print."""
        if self.unit is None:
            return format_bound(self.bound)
        return f"{float(_DIGITS.create_decimal_from_float(self.bound)):.4g}"

    @property
    def _observed(self) -> str:
        """The observed loss in words."""
        return f"{100 * self.risk:.1f} %" if self.unit is None else f"{self.risk:.4g}"

    def _repr_html_(self) -> str:
        """The sentence, and the numbers below it."""
        parts = self.parts
        bound = math.ceil(10_000 * self.bound - 1e-9) / 10_000
        digits = ".4f" if self.unit is None else ".4g"
        lines = [
            ["bound on the error", self.promised if self.unit else f"{bound:.4f}"],
            ["observed error", f"{self.risk:{digits}}"],
            ["part of the bound: observed", f"{parts.observed:{digits}}"],
            ["part of the bound: complexity", f"{parts.complexity:{digits}}"],
            ["part of the bound: confidence", f"{parts.confidence:{digits}}"],
            ["groups of rows" if self.grouped else "rows", f"{self.n:,}"],
            ["probability that it fails", f"{self.delta:.4g}"],
            ["method", self.method],
        ]
        return make_html_table(str(self), [], lines)


def shift_bound(bound: float, shift: Shift | None) -> float:
    """What a bound becomes for another source of new rows."""
    return bound if shift is None else shift.worst(bound)


def get_sampling_facts(one: Any) -> dict[str, Any]:
    """What is assumed of the draw of some rows, as fields of a certificate by them."""
    about = {name: getattr(one, name) for name in ("grouped", "repeats", "distinct")}
    # Only new rows are compared with those of a fit.
    about |= {"matches": getattr(one, "matches", None), "worst": getattr(one, "worst", 0)}
    return {**about, "near_copies": getattr(one, "near_copies", None)}


def compute_log_delta(delta: float, share: float = 1.0) -> float:
    """Check the probability with which a promise may fail and its share; returns the log of both."""
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie between 0 and 1, got {delta!r}")
    if not 0 < share <= 1:
        raise ValueError(f"share must lie in (0, 1], got {share!r}")
    if not delta * share > 0:
        raise ValueError(f"delta and share are too small, got {delta!r} and {share!r}")
    return math.log(delta * share)


def compute_certificate(
    method: str,
    observed: tuple[float, ...],
    n: int,
    complexity: float,
    delta: float,
    share: float,
    *,
    risk: float | None = None,
    grouped: bool = False,
    shift: Shift | None = None,
    unit: float | None = None,
    **rest: Any,
) -> Certificate:
    """Bound an error by one row of `METHODS`; the parameters are those of `Certificate`.

    The risk is the first of the observed numbers, in units of the target if there is one, if it is not
    given.

    Raises
    ------
    ValueError
        If `delta` or `share` is out of range, or the rows come in groups and must not.
    """
    log_delta = compute_log_delta(delta, share)
    inequality = get_inequality(method)
    if not _get_min_rows(method) <= n <= _MOST_ROWS:
        raise ValueError(f"n must lie in {_get_min_rows(method)} .. {_MOST_ROWS}, got {n!r}")
    if grouped and inequality.whole_errors:
        usable = ", ".join(name for name in METHODS if not get_inequality(name).whole_errors)
        raise ValueError(
            f"{method} counts whole errors of independent rows, but these come in groups; "
            f"expected one of {usable}"
        )
    most = 1.0 if unit is None else unit
    bound = most * shift_bound(inequality.bound(*observed, int(n), complexity, log_delta), shift)
    risk = most * observed[0] if risk is None else risk
    entries = (delta, share, n, risk, observed, complexity, grouped)
    return Certificate(method, bound, *entries, shift=shift, unit=unit, **rest)


def _get_min_rows(method: str) -> int:
    """A part of the rows may be empty."""
    return 0 if METHODS[method].where else 1


def restore_certificate(entries: dict[str, Any]) -> Certificate:
    """A certificate by its fields, as a file holds them: the bound is computed again.

    What was observed has to be believed, as the rows are not there.

    Raises
    ------
    ValueError
        If a field is missing or out of range, or the bound is below what the others give.
    """
    names = {field.name for field in fields(Certificate)}
    # Files of earlier versions hold none of these.
    added = {"matches": None, "worst": 0, "near_copies": None}
    entries = {**added, **entries} if isinstance(entries, dict) else entries
    if not isinstance(entries, dict) or set(entries) != names:
        raise ValueError(f"expected a certificate with {sorted(names)}, got {entries!r}")
    shift = entries["shift"]
    if shift is not None and (not isinstance(shift, dict) or set(shift) != {"kind", "most"}):
        raise ValueError(f"shift must be None or a kind and how much at most, got {shift!r}")
    observed = tuple(entries["observed"])
    shift = None if shift is None else Shift(**shift)
    if entries["matches"] is not None:
        raise ValueError(f"the rows of a fit match none, got matches {entries['matches']!r}")
    near = restore_near_copies(entries["near_copies"])
    rest = {"observed": observed, "shift": shift, "near_copies": near}
    given = Certificate(**{**entries, **rest})
    if given.method not in METHODS:
        raise ValueError(f"unknown method {given.method!r}")
    _check_restored_numbers(given)
    again = given.at(given.delta)
    # Logarithms of other platforms differ in their last digits.
    if not given.bound >= again.bound - _ROUNDING * again._largest_bound:
        raise ValueError(
            f"the certificate of {given.method} says at most {given.bound:.6g}, but what it observed "
            f"gives {again.bound:.6g}"
        )
    return given


def serialize_certificates(
    certificates: Sequence[Certificate], deployed: Certificate
) -> dict[str, Any]:
    """What a file holds of the certificates of a fit, of which one is deployed."""
    # Rivals may be equal in all that they say, and yet one of them alone was fixed before the rows.
    place = [one is deployed for one in certificates].index(True)
    return {"certificates": [asdict(one) for one in certificates], "deployed": place}


def restore_certificates(stored: StoredState) -> tuple[tuple[Certificate, ...], Certificate]:
    """All certificates that a file holds, checked as far as they tell of themselves, and the one."""
    saved = stored["certificates"]
    if not isinstance(saved, list) or len(saved) > _MOST_CERTIFICATES:
        raise ValueError(f"expected a list of certificates, got {saved!r}")
    certificates = tuple(map(restore_certificate, saved))
    return certificates, certificates[stored.get_integer("deployed", 0, len(saved) - 1)]


def restore_full_certificate(stored: StoredState) -> Certificate | None:
    """The certificate of a whole tree that a file holds beside that of a small one."""
    return restore_certificate(stored["full_certificate"]) if "full_certificate" in stored else None


def _check_restored_numbers(given: Certificate) -> None:
    if type(given.n) is not int or not _get_min_rows(given.method) <= given.n <= _MOST_RESTORED:
        raise ValueError(f"n must be a number of rows, got {given.n!r}")
    numbers = (given.delta, given.share, given.risk, given.complexity, *given.observed)
    if not all(type(one) in (int, float) and math.isfinite(one) for one in numbers):
        raise ValueError(f"a certificate must hold finite numbers, got {numbers}")
    if given.repeats is not None and (type(given.repeats) is not int or given.repeats < 0):
        raise ValueError(f"repeats must be a number of rows or None, got {given.repeats!r}")
    if type(given.worst) is not int or given.worst < 0:
        raise ValueError(f"worst must be a number of rows, got {given.worst!r}")
    if given.unit is not None and not (
        type(given.unit) in (int, float) and 0 < given.unit < math.inf
    ):
        raise ValueError(f"unit must be a positive number or None, got {given.unit!r}")
    if not 0 <= given.risk <= given._largest_bound:
        raise ValueError(f"risk must lie in 0 .. {given._largest_bound:g}, got {given.risk!r}")
    if given.complexity < 0 and given.method != "single_draw":
        raise ValueError(f"complexity must not be negative, got {given.complexity!r}")


@validate_arguments
def tightest(*certificates: Certificate) -> Certificate:
    """The lowest of several bounds, which hold together.

    Parameters
    ----------
    *certificates : Certificate
        Certificates of the same delta, whose shares were fixed before the rows were seen.

    Returns
    -------
    Certificate

    Raises
    ------
    ValueError
        If their shares sum to more than 1, or they have several deltas.
    """
    if len({certificate.delta for certificate in certificates}) != 1:
        raise ValueError("certificates must have the same delta")
    total = sum(certificate.share for certificate in certificates)
    if total > 1 + 1e-9:
        raise ValueError(f"shares of delta must sum to at most 1, got {total:g}")
    return min(certificates, key=lambda certificate: certificate.bound)
