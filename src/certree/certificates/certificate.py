"""Certificates: upper bounds on the error on new rows, with the observations behind them."""

import math
from dataclasses import asdict, dataclass, field, replace
from reprlib import repr as shortened
from typing import Any

from certree.certificates.baseline import Baseline
from certree.certificates.methods import (
    METHODS,
    get_inequality,
    get_period_method,
)
from certree.certificates.monitor import Monitor
from certree.certificates.row_order import RowOrder
from certree.certificates.shift import Shift, make_shift
from certree.interface.arrays import ADDED_LATER
from certree.interface.formatting import (
    format_bound,
    format_confidence,
    format_loss_bound,
    format_quantity,
)
from certree.interface.notebook import make_html_table
from certree.interface.signatures import (
    expect_error_probability,
    validate_arguments,
    validate_settings,
)
from certree.interface.stored_fields import StoredField, restore_value
from certree.interface.stored_state import DamagedModelError, StoredState
from certree.rows.near_copies import NearCopies
from certree.rows.time_order import Period, may_depend

# Largest number of rows of a certificate: doubles still hold each integer exactly.
_MOST_ROWS = 2**50
_ROUNDING = 1e-9
# Largest number of rows in a certificate of a model file; bounds for more rows take long to compute.
_MOST_RESTORED = 10**9
# The assumption of certificates that count groups.
_NEW_GROUPS = (
    "no group has rows both among those of the fit and among those that certify: a fit with groups "
    "splits whole groups, and certify does not check it"
)
# Largest number of certificates in a model file; a fit makes fewer.
_MOST_CERTIFICATES = 64


@dataclass(frozen=True, slots=True)
class Breakdown:
    """The three terms of a certificate's bound, which sum to it; in the units of the bound.

    `Certificate.parts` returns it.

    Parameters
    ----------
    observed : float
        Limit of the bound as the number of calibration rows grows, if the observed error stays the
        same.
    complexity : float
        Increase because the calibration rows chose among several hypotheses (prunings or models).
    confidence : float
        Increase because the number of calibration rows is finite and delta is small.
    """

    observed: float
    complexity: float
    confidence: float


@dataclass(frozen=True, slots=True)
class Matches:
    """Number of calibration rows whose features equal those of a row of the fit.

    The value of the field `matches` of a `Certificate`.

    Parameters
    ----------
    found : int
        Number of such calibration rows.
    expected : float or None
        Expected number of such rows among as many new rows, estimated from the repetitions within
        the rows of the fit; None: the model does not store these counts.
    """

    found: int
    expected: float | None

    @property
    def statement(self) -> str:
        """Both numbers of this object as a clause of a certificate's assumptions, str.

        An example is "3 rows match rows of the fit, where about 2 are expected of new rows". If
        `expected` is None it says that this is not known.
        """
        found = format_quantity(self.found, "row matches", "rows match")
        if self.expected is None:
            return (
                f"{found} rows of the fit; whether new rows would was not checked, "
                "as the model does not know how often rows of its fit repeat"
            )
        return f"{found} rows of the fit, where about {self.expected:,.3g} are expected of new rows"


@dataclass(frozen=True, slots=True)
class Certificate:
    """An upper bound on the error of a model on new rows, with the observations it is computed from.

    With probability at least ``1 - delta * share`` over the draw of the calibration set, the error
    on new rows is at most `bound`. `certify` and the other functions of this package make
    certificates; ``print`` gives the statement as a sentence.

    Parameters
    ----------
    method : str
        Key of `METHODS`: the theorem behind the bound.
    bound : float
        Upper bound on the error: a fraction of new rows, or an absolute error in units of the
        target.
    delta : float
        Probability with which the certificate, and those it shares delta with, may fail.
    share : float
        Fraction of delta that this certificate uses, in (0, 1].
    n : int
        Number of independent observations: calibration rows, or groups of rows.
    risk : float
        Error observed on the calibration rows, in the units of `bound`; of a pair of groups the
        difference of their errors, which may be negative.
    observed : tuple of float
        Observed numbers that enter the inequality of `method`, in the order of its parameters;
        errors of a numeric target are divided by `unit`.
    complexity : float
        Price of choosing by the calibration rows, in nats: divergence of the posterior from the
        prior, or minus the log prior probability of the chosen hypothesis; 0 if nothing was chosen.
    grouped : bool
        Whether the independent observations are groups of rows.
    repeats : int or None
        Number of calibration rows that equal a row of the fit or another calibration row, and that
        were kept, since the value of `duplicates` allows them; None: calibration rows were not
        compared with the rows of the fit.
    part : str
        Name of the subset of rows that the bound is about, such as a class; empty: all rows.
    shift : Shift or None
        How far the distribution of new rows may be from that of the calibration rows; None: it is
        the same.
    unit : float or None
        For numeric targets the largest absolute error that counts (larger ones are clipped to it),
        in units of the target; None: the loss is 0 or 1.
    distinct : bool
        Whether equal calibration rows were treated as copies of one row and counted once.
    matches : Matches or None
        Number of calibration rows that equal rows of the fit (`repeats` includes them), and how
        many of as many new rows would by chance; None: none do, or they were not compared.
    worst : int
        Number of repeated calibration rows that are counted in the worst way: as errors, or as not
        covered. The bound then holds whether they are new draws or copies.
    near_copies : NearCopies or None
        Result of the search for calibration rows that nearly equal training rows; None: no search.
        Not compared by ``==``.
    baseline : Baseline or None
        Error of a constant prediction on the calibration rows, in the units of `bound`: of the
        most frequent class, or of the median of a numeric target. It is an estimate, not a bound.
        None: it is not known, or new rows are from another source. Not compared by ``==``.
    is_single_tree : bool
        Whether the labels of a vote are those of one small tree (`max_leaf_nodes`), so that the
        sentence names a tree instead of a vote. Not compared by ``==``.
    row_order : RowOrder or None
        Result of the test of whether errors depend on the order of the rows; None: no test. Model
        files hold it only if they do. Not compared by ``==``.
    period : Period or None
        Period of the calibration rows, and whether they are taken as independent; the bound is then
        about later rows, whose mean risk may exceed that of the period by the drift in `shift` (0
        without). None: rows have no times.

    Raises
    ------
    ValueError
        If `bound` is outside 0 .. 1, or 0 .. unit, or `baseline` is larger than that; or if rows of
        `period` may depend on each other, and `method` needs independent rows.
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
    matches: Matches | None = field(default=None, metadata=ADDED_LATER)
    worst: int = field(default=0, metadata=ADDED_LATER)
    near_copies: NearCopies | None = field(default=None, compare=False, metadata=ADDED_LATER)
    baseline: Baseline | None = field(default=None, compare=False, metadata=ADDED_LATER)
    is_single_tree: bool = field(default=False, compare=False, metadata=ADDED_LATER)
    row_order: RowOrder | None = field(default=None, compare=False, metadata=ADDED_LATER)
    period: Period | None = field(default=None, metadata=ADDED_LATER)

    def __post_init__(self) -> None:
        validate_settings(self)
        expect_method_for_period(self.method, self.period)
        largest = self._largest_bound
        if not 0 <= self.bound <= largest:
            raise ValueError(
                f"bound must lie in 0 .. {largest:g}, got {self.bound!r}: make certificates by certify"
            )
        if self.baseline is not None and self.baseline.value > largest * (1 + _ROUNDING):
            raise ValueError(f"baseline must lie in 0 .. {largest:g}, got {self.baseline.value!r}")

    def __repr__(self) -> str:
        # Short, as certificates are often printed in tuples; str() has all fields in a sentence.
        names = ("method", "bound", "risk", "n", "delta", *(["part"] if self.part else []))
        entries = (f"{name}={getattr(self, name)!r}" for name in names)
        return f"Certificate({', '.join(entries)}, ...)"

    @property
    def _largest_bound(self) -> float:
        """The largest possible value of `bound`: 1, or `unit` for numeric targets."""
        return 1.0 if self.unit is None else self.unit

    @property
    def about(self) -> str:
        """What this certificate's bound limits, as a phrase such as "this classifier's error".

        It is the `subject` of its method in `METHODS`, with the word "tree" instead of "vote" if
        `is_single_tree` is set.
        """
        return METHODS[self.method].get_subject(self.is_single_tree)

    @property
    def is_below_baseline(self) -> bool | None:
        """Whether the bound is below the error of the constant prediction on the calibration rows.

        If it is not, the certificate does not show that the model is better than the constant. None
        if there is no `baseline`.
        """
        return None if self.baseline is None else self.bound < self.baseline.value

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Sentences that state what must be true for the certificate to hold, as a tuple of str.

        They concern the draw of the rows, their order if errors depend on it, repeated and nearly
        equal rows, and what the method needs.
        """
        units = "groups of rows" if self.grouped else "distinct rows" if self.distinct else "rows"
        drawn: tuple[str, ...]
        drawn = (f"{units} are drawn independently, from the source that new ones come from",)
        if self.period is not None:
            drawn = self._list_period_assumptions(units)
        elif self.shift is not None:
            drawn = (f"{units} are drawn independently; {self.shift.assumption}",)
        near = () if self.near_copies is None else self.near_copies.assumptions
        if self.grouped:
            near = (_NEW_GROUPS, *near)
        order = () if self._order_assumption is None else (self._order_assumption,)
        return *drawn, *order, *self._duplicate_assumptions, *near, METHODS[self.method].needs

    @property
    def _order_assumption(self) -> str | None:
        """The assumption on the order of the rows, as a sentence; None if errors do not depend on it.

        It is needed if the errors of the calibration rows depend on their order in the table.
        """
        if self.row_order is None or not self.row_order.is_dependent:
            return None
        return self.row_order.assumption

    def _list_period_assumptions(self, units: str) -> tuple[str, ...]:
        """Return what the certificate assumes of the rows of its period, and of later rows.

        The result is two clauses, such as "rows from 1 May to 3 June are drawn independently, from
        one source". The certificate must have a `period`, the times of the calibration rows. units:
        name of the independent observations, such as "groups of rows".
        """
        assert self.period is not None
        span = self.period.describe(has_groups=self.grouped)
        drawn = (
            f"{units} {span} are drawn independently, from one source"
            if self.period.is_independent
            else f"{units} {span} may depend on earlier ones; their number depends on times alone"
        )
        if self.shift is not None and self.shift.kind != "drift":
            return drawn, self.shift.assumption
        return drawn, f"the mean risk of later ones {self._describe_drift('the period')}"

    def _describe_drift(self, period: str) -> str:
        """Return the largest assumed increase of the mean risk after the period, as words.

        They follow a noun such as "the mean risk of later ones", and are for instance "exceeds that
        of the period by at most 1 % (drift)". period: words for the period of the calibration rows.
        """
        if self.shift is None or not self.shift.most:
            return f"does not exceed that of {period} (drift 0)"
        drift = self._format_error(self._largest_bound * self.shift.most)
        return f"exceeds that of {period} by at most {drift} (drift)"

    @property
    def _duplicate_assumptions(self) -> tuple[str, ...]:
        """How equal calibration rows of this certificate were treated, as sentences.

        They say whether equal rows were taken as new draws, as copies that count once, or in the
        worst case, and how many equal rows of the fit. Empty if there are no equal rows, unless
        `distinct` is set: then copies count once, whether there are any or not.
        """
        sentences = []
        if self.distinct:
            sentences.append(
                "rows of that source never coincide, and each that was drawn is in the table"
            )
        elif self.repeats and not self.worst:
            sentences.append("rows that are equal are independent draws, not copies")
        if self.worst:
            sentences.append(
                f"{self.worst:,} rows repeat others and count as the worst case, which is right "
                "whether they are draws or copies"
            )
        if self.matches is not None:
            sentences.append(self.matches.statement)
        return tuple(sentences)

    @property
    def log_delta(self) -> float:
        """Natural logarithm of the probability with which this certificate may fail.

        It is ``log(delta * share)``, negative.
        """
        return math.log(self.delta * self.share)

    @property
    def parts(self) -> Breakdown:
        """The bound of this certificate, split into three terms that sum to it.

        The fields of `Breakdown`: `observed` is the limit of the bound for infinitely many rows,
        `complexity` the increase that is due to choices made by the calibration rows, and
        `confidence` the increase that is due to the finite number of rows and to delta. All are in
        the units of the bound.
        """
        observed = self._limit
        alone = self._recompute_bound(self.n, 0.0)
        return Breakdown(observed, self.bound - alone, alone - observed)

    @property
    def _limit(self) -> float:
        """Limit of this certificate's bound for infinitely many rows with the same observed error.

        In the units of `bound`.
        """
        limit = min(max(get_inequality(self.method).limit(*self.observed), 0.0), 1.0)
        return self._largest_bound * shift_bound(limit, self.shift)

    def _recompute_bound(self, n: int, complexity: float) -> float:
        """Return the bound for another number of observations `n` and another `complexity` (nats).

        The observed numbers, delta, `share` and shift stay those of this certificate; the result is
        in the units of `bound`.
        """
        bound = get_inequality(self.method).bound
        return self._largest_bound * shift_bound(
            bound(*self.observed, n, complexity, self.log_delta), self.shift
        )

    def bound_by(self, n: int) -> float:
        """Return the bound that n other rows would give if observed error and complexity were the same.

        Use it to plan the size of a calibration set; it is a projection, not a guarantee.

        Parameters
        ----------
        n : int
            Number of calibration rows, or of groups.

        Returns
        -------
        float
            The projected bound, in units of `bound`.
        """
        return self._recompute_bound(n, self.complexity)

    def at(self, delta: float) -> "Certificate":
        """Return this certificate for another `delta`, which must be fixed without looking at the rows.

        The bound is computed again from the same observations; `share` and all other fields stay.
        """
        kept = ("risk", "part", "shift", "unit", "baseline", "is_single_tree")
        rest = {name: getattr(self, name) for name in kept} | get_sampling_facts(self)
        entries = self.method, self.observed, self.n, self.complexity
        return compute_certificate(*entries, delta, self.share, **rest)

    def nearby(
        self,
        *,
        kl: float | None = None,
        total_variation: float | None = None,
        drift: float | None = None,
    ) -> "Certificate":
        """Return the certificate for new rows from any distribution near that of the calibration rows.

        The new bound is the largest error that a distribution within the distance can have. It uses
        no further delta, so distances may be tried after looking. If the certificate is about a
        subset of the rows, such as a class, the distance is between the distributions of that
        subset.

        Parameters
        ----------
        kl : float or None
            Largest Kullback-Leibler divergence of the calibration rows' distribution from the new
            one, KL(calibration || new), in nats. For a limit on KL(new || calibration) the bound
            would be the largest r with ``kl(r, bound) <= kl``, which is close to this one if both
            are small.
        total_variation : float or None
            Largest total variation distance: the largest difference between the probabilities of
            one event.
        drift : float or None
            For rows in time order: largest difference between the mean risk of later rows and that
            of the period, in units of the bound.

        Returns
        -------
        Certificate
            With the larger bound, and the distance in its field `shift`. It has no `baseline`, as
            the classes may be distributed differently among new rows.

        Raises
        ------
        ValueError
            If not exactly one distance is passed, it is out of range, the certificate already has a
            shift, or it bounds a difference of two errors ("gaps"); if `drift` is passed for rows
            without times, or another distance for rows of a period that may depend on each other.

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
        if drift is not None and self.period is None:
            raise ValueError(
                "drift must be None if the calibration rows have no times, as it is the change from "
                f"their period to later rows, got {drift!r}: pass time to fit or certify, or use "
                "total_variation"
            )
        if drift is None and may_depend(self.period):
            raise ValueError(
                "drift must be passed for rows in time order, which may depend on each other (kl and "
                f"total_variation need independent rows), got drift=None, kl={kl!r} and "
                f"total_variation={total_variation!r}: pass drift alone"
            )
        shift = make_shift(
            kl, total_variation, None if drift is None else drift / self._largest_bound
        )
        if self.shift is not None:
            raise ValueError(
                "this certificate already allows for a distribution shift (result of nearby): call "
                "nearby on the certificate without shift"
            )
        self._check_single_error("a source nearby")
        return replace(
            self,
            bound=self._largest_bound * shift_bound(self.bound / self._largest_bound, shift),
            shift=shift,
            baseline=None,
        )

    def monitor(
        self, alpha: float = 0.05, *, block: int = 1, model_hash: str | None = None
    ) -> Monitor:
        """Return a sequential test, by labelled rows that arrive later, of whether the bound holds.

        Parameters
        ----------
        alpha : float
            Probability with which the monitor may ever raise an alarm while the bound holds,
            however long it runs and however often one looks.
        block : int
            Number of consecutive losses whose mean counts as one loss; 1: rows are independent.
            Choose it about ten times as large as the number of rows over which losses depend on
            each other.
        model_hash : str or None
            Hash of the model file, which `certree info` prints. The monitor then refuses losses of
            other models, and can be saved.

        Returns
        -------
        Monitor
            A monitor without rows. Pass it the losses of new rows, divided by `unit` if that is not
            None; if the certificate is about a subset of the rows (`part`), the losses of this
            subset; if it counts groups (`grouped`), the mean loss of each group.

        Raises
        ------
        ValueError
            If the bound is 1 (no rows can contradict it), the certificate bounds a difference of
            two errors, or an argument is out of range.
        """
        self._check_single_error("a monitor")
        bound = self.bound / self._largest_bound
        return Monitor(bound, alpha, self.unit, block, self.delta, model_hash, self.grouped)

    def _check_single_error(self, what: str) -> None:
        """Raise ValueError if the certificate bounds a difference of two errors.

        what: the caller's purpose, which the message begins with.
        """
        if get_inequality(self.method).difference:
            raise ValueError(
                f"{what} needs a certificate of one error, but method {self.method!r} bounds the "
                "difference of two errors: use a certificate of another family, such as groups"
            )

    def n_samples_needed(self, target: float) -> int | None:
        """Return how many new calibration rows (or groups) would lower the bound to a target.

        A projection that keeps the observed error and the complexity. All rows must be new:
        certifying by the present rows and further ones is a second inspection, which `certify`
        takes as ``look=2``.

        Parameters
        ----------
        target : float
            The bound to reach, in units of `bound`.

        Returns
        -------
        int or None
            The smallest number of rows whose projected bound is at most `target`; None if no number
            is enough, as the observed error is too high.
        """
        if target <= self._limit:
            return None

        def is_enough(n: int) -> bool:
            """Return whether the bound projected for n new rows is at most `target`.

            `target` is the argument of the enclosing method; the projection is
            `Certificate.bound_by`.
            """
            return bool(self.bound_by(n) <= target)

        below, above = 0, 1
        while not is_enough(above):
            below, above = above, 2 * above
            if above > _MOST_ROWS:
                return None
        while above - below > 1:
            middle = (below + above) // 2
            below, above = (below, middle) if is_enough(middle) else (middle, above)
        return above

    def __str__(self) -> str:
        """Return this certificate as a sentence.

        It states the confidence, the number and kind of the calibration rows, the bound, the
        observed error, that of a constant prediction, and the method. Further sentences follow if
        the bound is not below the error of the constant, or if errors depend on the order of rows.
        """
        method = METHODS[self.method]
        rows, where = (words.format(part=self.part) for words in (method.rows, method.where))
        units, new = self._describe_calibration_rows(rows), self._describe_new_rows(where)
        proviso = ""
        if self._is_about_later_rows:
            proviso = f", provided that their mean risk {self._describe_drift('this period')}"
        subject = self.about
        if self.unit is not None and not get_inequality(self.method).whole_errors:
            subject += f" (one beyond {self.unit:.4g} counts as that)"
        observed = "there are none"
        if self.n:
            observed = f"observed on them: {self._format_error(self.risk)}"
        if self.baseline is not None:
            observed += f", {self.baseline.name}: {self._format_error(self.baseline.value)}"
        return (
            f"With probability at least {format_confidence(self.delta)} over the draw of the "
            f"{self.n:,} {units}, {subject} on {new} is at most "
            f"{self.promised}{proviso} ({observed}; method: {self.method}).{self._caveats}"
        )

    @property
    def _caveats(self) -> str:
        """Sentences that ``str()`` appends, each after a space; empty if there are none.

        They say that the bound is not below the error of a constant prediction, or that errors
        depend on the order of the rows.
        """
        caveats = ""
        if self.is_below_baseline is False:
            caveats = " The bound does not show that the model is better than this constant."
        if self._order_assumption is not None:
            caveats += (
                " Errors depend on the order of the rows: the bound may not hold for later rows."
            )
        return caveats

    @property
    def _is_about_later_rows(self) -> bool:
        """Whether the bound is about rows later than the calibration rows.

        The calibration rows then have times, and the risk may drift after their period.
        """
        return self.period is not None and (self.shift is None or self.shift.kind == "drift")

    def _describe_calibration_rows(self, rows: str) -> str:
        """Return which rows the bound was computed from, as words that follow their number.

        rows: word for the rows, such as "calibration rows of class A" (the field `rows` of the
        certification method in `METHODS`, with the name of the subset of rows filled in). An example
        of the result is "calibration rows of 3 March 2026, taken as independent". It also says
        whether groups were counted, and how many rows repeat others.
        """
        period = self.period
        span = "" if period is None else f" {period.describe(has_groups=self.grouped)}"
        rows = f"distinct {rows}" if self.distinct else rows
        units = f"groups of {rows}" if self.grouped else rows
        given = f"{units}{span}, out of rows" if self.part else f"rows given{span},"
        if self.grouped:
            given = f"groups of rows given{span},"
        if self.repeats is None:
            units = f"{given} which were not compared with those of the fit"
        elif self.repeats:
            # Each voter of an ensemble has calibration rows of its own; the sentence means all rows.
            of_which = f"{rows}, where" if " or more " in rows else f"{given} of which"
            if self.grouped:
                of_which = f"groups of rows given{span}, where"
            units = f"{of_which} {self.repeats:,} repeat other rows and count as independent draws"
            if self.worst:
                units = f"{of_which} {self.worst:,} repeat other rows and count as the worst case"
        else:
            units += span
        if self.shift is not None:
            units += self.shift.kept
        if self.period is None:
            return units
        how = (
            "which may depend on each other" if may_depend(self.period) else "taken as independent"
        )
        return f"{units}, {how}"

    def _describe_new_rows(self, where: str) -> str:
        """Return which new rows the bound is about, as words that follow "error on".

        where: words that restrict the new rows, such as " of class A", or "" (the field `where` of
        the certification method in `METHODS`, with the name of the subset of rows filled in).
        """
        losses = "fraction of errors" if self.unit is None else "mean"
        of_groups = f", the mean over groups of each group's {losses},"
        if self._is_about_later_rows:
            return f"later groups{of_groups}" if self.grouped else f"later rows{where}"
        source = "the same source" if self.shift is None else self.shift.source
        if self.grouped:
            return f"new groups from {source}{of_groups}"
        return f"new rows{where} from {source}"

    @property
    def promised(self) -> str:
        """The bound of this certificate as text, rounded up so that it does not become stronger.

        In percent, or with four significant digits in units of the target.
        """
        return format_bound(self.bound) if self.unit is None else format_loss_bound(self.bound)

    def _format_error(self, error: float) -> str:
        """Return an error in the units of `bound` as text: in percent, or in units of the target."""
        return f"{100 * error:.1f} %" if self.unit is None else f"{error:.4g}"

    def _repr_html_(self) -> str:
        """Return this certificate as HTML for notebooks.

        The sentence of ``str()``, and a table of the bound's terms.
        """
        parts = self.parts
        bound = math.ceil(10_000 * self.bound - 1e-9) / 10_000
        digits = ".4f" if self.unit is None else ".4g"
        baseline = []
        if self.baseline is not None:
            name, value = self.baseline.name, self.baseline.value
            baseline = [[f"observed error, {name}", f"{value:{digits}}"]]
        lines = [
            ["bound on the error", self.promised if self.unit else f"{bound:.4f}"],
            ["observed error", f"{self.risk:{digits}}"],
            *baseline,
            ["part of the bound: observed", f"{parts.observed:{digits}}"],
            ["part of the bound: complexity", f"{parts.complexity:{digits}}"],
            ["part of the bound: confidence", f"{parts.confidence:{digits}}"],
            ["groups of rows" if self.grouped else "rows", f"{self.n:,}"],
            ["probability that it fails", f"{self.delta:.4g}"],
            ["method", self.method],
        ]
        return make_html_table(str(self), [], lines)


def shift_bound(bound: float, shift: Shift | None) -> float:
    """Return the bound on the error of new rows under a distribution shift.

    It is the largest error that new rows can have if the error on the source of the calibration
    rows is `bound`.

    bound: bound on the error for the source of the calibration rows, between 0 and 1. shift:
    `Shift`, the largest distance (Kullback-Leibler or total variation) of the new distribution, the
    largest drift (increase of the mean risk), or the importance weights by which calibration rows
    were selected. The bound is returned unchanged with such weights, or if `shift` is None.
    """
    return bound if shift is None else shift.worst(bound)


def get_sampling_facts(source: Any) -> dict[str, Any]:
    """Return how calibration rows were drawn and repeated, as keyword arguments of `Certificate`.

    Parameters
    ----------
    source : object
        Describes calibration rows: a `Certificate`, `CertificateTerms`, `CalibrationSet`,
        `HeldOut`, `HeldOutNumbers` or `TrainCalibrationSplit`. Its attributes `grouped`, `repeats`,
        `distinct`, `worst`, `near_copies` and `period` are read, and `matches` and `row_order` if it
        has them.

    Returns
    -------
    dict
        The values of these eight fields, by name; `matches` and `row_order` default to None.
    """
    names = "grouped", "repeats", "distinct", "worst", "near_copies", "period"
    # Only certificates and their terms know how many rows equal rows of another fit, and whether
    # errors depend on the order of the rows.
    found = {name: getattr(source, name, None) for name in ("matches", "row_order")}
    return {**{name: getattr(source, name) for name in names}, **found}


def expect_method_for_period(method: str, period: Period | None) -> None:
    """Raise a ValueError if calibration rows may depend on each other and a method forbids it.

    method: key of `METHODS`; period: first and last time of the calibration rows, and whether these
    are taken as independent; None: rows have no times, and nothing is checked.
    """
    if not may_depend(period) or method not in METHODS:
        return
    if not get_inequality(method).allows_dependence:
        raise ValueError(
            f"method {method!r} needs independent rows, but rows in time order may depend on each "
            "other: pass independent=True if rows of one period do not"
        )


def compute_log_delta(delta: float, share: float = 1.0) -> float:
    """Return ``log(delta * share)``, after a check of both.

    delta: probability with which a guarantee may fail, in (0, 0.5]; share: fraction of it that is
    used, in (0, 1]. Raises ValueError if one is out of range, or their product is 0 in floating
    point.
    """
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie between 0 and 1, got {delta!r}: use for instance 0.05")
    expect_error_probability(delta)
    if not 0 < share <= 1:
        raise ValueError(f"share must lie in (0, 1], got {share!r}: use 1 for all of delta")
    if not delta * share > 0:
        raise ValueError(
            f"delta times share must be positive in floating point, got {delta!r} and {share!r}"
        )
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
    period: Period | None = None,
    **rest: Any,
) -> Certificate:
    """Compute the bound of a method from the observed numbers, and return it as a certificate.

    Parameters
    ----------
    method : str
        Key of `METHODS`.
    observed : tuple of float
        Numbers that the inequality of the method takes before n, in its order: for most methods the
        observed error alone.
    n : int
        Number of independent observations: rows or groups.
    complexity : float
        Price of choosing by the calibration rows (nats); 0 if nothing was chosen.
    delta, share : float
        Probability with which certificates may fail, and the fraction of it that this one uses.
    risk : float or None
        Observed error, in units of the bound; None: the first number of `observed`, times `unit`.
    grouped : bool
        Whether the observations are groups of rows.
    shift : Shift or None
        How far new rows may be from the calibration rows in distribution; None: not at all.
    unit : float or None
        Largest absolute error that counts, for numeric targets; None: losses are 0 or 1.
    period : Period or None
        First and last time of the calibration rows, and whether these are taken as independent.
        None: rows have no times. If rows may depend on each other, the method is replaced by the one
        for such rows.
    **rest
        Other fields of `Certificate`, such as `repeats`, by name.

    Returns
    -------
    Certificate
        Its field `bound` is the bound that was computed.

    Raises
    ------
    ValueError
        If `method` is unknown; if `delta`, `share` or `n` is out of range; or if the rows come in
        groups, or may depend on earlier rows, and the method needs independent rows.
    """
    if may_depend(period):
        method = get_period_method(method)
    log_delta = compute_log_delta(delta, share)
    inequality = get_inequality(method)
    if not _get_min_rows(method) <= n <= _MOST_ROWS:
        raise ValueError(f"n must lie in {_get_min_rows(method)} .. {_MOST_ROWS}, got {n!r}")
    if grouped and inequality.whole_errors:
        usable = ", ".join(name for name in METHODS if not get_inequality(name).whole_errors)
        raise ValueError(
            f"method must be one of {usable} if the rows come in groups, got {method!r}, which counts "
            "errors of independent rows"
        )
    most = 1.0 if unit is None else unit
    bound = most * shift_bound(inequality.bound(*observed, int(n), complexity, log_delta), shift)
    risk = most * observed[0] if risk is None else risk
    entries = (delta, share, n, risk, observed, complexity, grouped)
    return Certificate(method, bound, *entries, shift=shift, unit=unit, period=period, **rest)


def _get_min_rows(method: str) -> int:
    """Return the smallest number of calibration rows that a method accepts.

    method: key of `METHODS`. Return 0 if its bounds are about subsets of the rows, which may be
    empty, else 1.
    """
    return 0 if METHODS[method].where else 1


def restore_certificate(entries: Any) -> Certificate:
    """Return the certificate whose fields a model file holds, after computing its bound again.

    entries: the fields of `Certificate` by name, as `dataclasses.asdict` returns them. The observed
    numbers cannot be checked, as the file does not hold the rows.

    Raises
    ------
    ValueError
        If a field is missing or out of range, or the stored bound is below the recomputed one.
    """
    given: Certificate = restore_value("certificate", Certificate, entries)
    if given.matches is not None:
        # A fit does not compare its rows with themselves.
        raise DamagedModelError(
            f"the model file's certificate must have no matches (null), got {given.matches!r}"
        )
    if given.method not in METHODS:
        raise DamagedModelError(
            f"the model file's certificate must have one of the methods {', '.join(METHODS)}, got "
            f"{given.method!r}"
        )
    ranges = {
        "n": (_get_min_rows(given.method), _MOST_RESTORED),
        "repeats": (0, math.inf),
        "worst": (0, math.inf),
        "unit": (math.ulp(0.0), math.inf),
        "risk": (0, given._largest_bound),
        "complexity": (-math.inf if given.method == "single_draw" else 0, math.inf),
    }
    for name, (least, most) in ranges.items():
        value = getattr(given, name)
        if value is not None and not least <= value <= most:
            raise DamagedModelError(
                f"the model file's certificate must have {name} in {least:g} .. {most:g}, got {value!r}"
            )
    again = given.at(given.delta)
    # Logarithms differ between platforms in their last digits.
    if not given.bound >= again.bound - _ROUNDING * again._largest_bound:
        raise DamagedModelError(
            f"the model file's certificate {given.method!r} must have the bound of its observed "
            f"numbers, {again.bound:.6g}, or a larger one, got {given.bound:.6g}"
        )
    return given


def _store_certificate(certificate: Certificate) -> dict[str, Any]:
    """Return what a model file holds of a certificate: its fields by name.

    Four fields are left out if they say nothing, as in files of earlier versions: `baseline` (the
    error of a constant prediction) if it is None, `is_single_tree` if it is False, `period` (of the
    calibration rows) if rows have no times, and `row_order` unless errors depend on the order of
    the rows. Files of shuffled tables are therefore equal.
    """
    entries = asdict(certificate)
    if certificate._order_assumption is None:
        del entries["row_order"]
    if certificate.baseline is None:
        del entries["baseline"]
    if not certificate.is_single_tree:
        del entries["is_single_tree"]
    if certificate.period is None:
        del entries["period"]
    return entries


def _restore_certificates(stored: StoredState, name: str, model: Any) -> tuple[Certificate, ...]:  # noqa: ARG001
    """Return all certificates of a fit from a model file, after computing their bounds again.

    stored, name: the content of the file, and the name of the entry; model: the estimator that is
    restored, not used. Raise ValueError if an entry is malformed, or a bound is lower than its
    observations allow.
    """
    saved = stored[name]
    if not isinstance(saved, list) or len(saved) > _MOST_CERTIFICATES:
        raise DamagedModelError(
            f"the model file's certificates must be a list of at most {_MOST_CERTIFICATES}, got "
            f"{shortened(saved)}"
        )
    return tuple(map(restore_certificate, saved))


def _restore_deployed(stored: StoredState, name: str, model: Any) -> Certificate:
    """Return the certificate of the model that predicts, from its index in a model file.

    stored, name: the content of the file, and the name of the entry with the index; model: the
    estimator that is restored, whose `certificates_` are set.
    """
    return model.certificates_[stored.get_integer(name, 0, len(model.certificates_) - 1)]


# Fields of model files for the certificates of a fit: all of them, and the index of the one that
# belongs to the model that predicts. By identity, as two certificates with equal fields may belong
# to different candidates.
CERTIFICATE_FIELDS = {
    "certificates": StoredField(
        "certificates_", _restore_certificates, lambda all_of, _: [*map(_store_certificate, all_of)]
    ),
    "deployed": StoredField(
        "certificate_",
        _restore_deployed,
        lambda deployed, model: [one is deployed for one in model.certificates_].index(True),
    ),
}
# The certificate of the vote of all prunings in a fit whose `max_leaf_nodes` has replaced that vote
# by a single small tree; other files do not have it.
FULL_CERTIFICATE_FIELD = StoredField(
    "full_certificate_",
    lambda stored, name, _: restore_certificate(stored[name]),
    lambda certificate, _: _store_certificate(certificate),
    default=None,
)


@validate_arguments
def tightest(*certificates: Certificate) -> Certificate:
    """Return the certificate with the lowest bound of several that hold together.

    Parameters
    ----------
    *certificates : Certificate
        Certificates with equal `delta`, whose `share` were fixed before the rows were seen.

    Returns
    -------
    Certificate
        The first one with the lowest bound.

    Raises
    ------
    ValueError
        If their shares sum to more than 1, or their deltas differ.
    """
    if len({certificate.delta for certificate in certificates}) != 1:
        deltas = sorted({certificate.delta for certificate in certificates})
        raise ValueError(
            f"certificates must all have the same delta, got {deltas}: compute all for one delta"
        )
    total = sum(certificate.share for certificate in certificates)
    if total > 1 + 1e-9:
        raise ValueError(
            f"shares of delta must sum to at most 1, got {total:g}: compute each certificate with a "
            "smaller share"
        )
    return min(certificates, key=lambda certificate: certificate.bound)
