"""Certificates: what is promised about errors on new rows, with which probability, and why.

`METHODS` lists what may be promised. A certificate of one entry holds with probability
``1 - delta share``, so that several whose shares sum to at most 1 hold together with ``1 - delta``, if
their shares were written down before the weighing rows were seen. Laws, temperatures and prunings may
be chosen by the same rows, as all of them are covered at once.
"""

import math
from dataclasses import dataclass, fields, replace
from decimal import ROUND_CEILING, Context
from typing import Any

from certree.certificates.bounds import INEQUALITIES, Inequality
from certree.certificates.monitor import Monitor
from certree.certificates.shift import Shift, shift_nearby
from certree.notebook import html_table
from certree.signatures import checked, expect_settings

# More than anybody has; numbers of doubles above would not be told apart from their neighbours.
_MOST_ROWS = 2**50
_ROUNDING = 1e-9
# More than a fit has had; a bound of even more takes long to compute.
_MOST_RESTORED = 10**9
# Digits that are printed of numbers in units of the target; a promise is rounded up.
_DIGITS = Context(prec=4, rounding=ROUND_CEILING)


@dataclass(frozen=True, slots=True)
class Method:
    """What is known of one way to certify.

    Parameters
    ----------
    inequality : str
        Entry of `bounds.INEQUALITIES` that the bound is by.
    subject : str
        What the certificate speaks about.
    needs : str
        What must hold besides independent rows.
    reference : str
        Where the inequality is proved.
    rows : str
        What rows the bound is over; "{part}" stands for their part.
    whole_errors : bool
        Whether it needs losses of 0 and 1, and so refuses groups of rows.
    where : str
        Which part of the new rows it speaks about, " of class {part}" or the like; empty: all of them.
        A part may have no rows, and the bound is 1 then.
    difference : bool
        Whether it bounds a difference of two errors, which no rows have by themselves.
    """

    inequality: str
    subject: str
    needs: str
    reference: str
    rows: str = "weighing rows"
    whole_errors: bool = False
    where: str = ""
    difference: bool = False


_CLASSIFIER = "this classifier's error"
_VOTE = "this vote's error"
_TREE = "this tree's error"
DRAWS = "the error of a tree drawn anew for each row"
_ONE_BEFORE = "the classifier was fixed before the held-out rows were seen"
_BEFORE = "tree, labels and prior were fixed without the weighing rows"
_TREE_BEFORE = "tree and prior were fixed without the weighing rows"
_ORDER_BEFORE = "the shares that order the classes were fixed without the weighing rows"
_SAMPLES_BEFORE = (
    "samples were drawn whatever the rows hold, and each voter, its labels and its prior were fixed by "
    "its sample alone"
)
_EVERY_BEFORE = (
    "the classifier was fixed before the held-out rows were seen, or chosen by them at the price of "
    "its prior mass"
)
_OF_A_VOTER = "rows or more out of each voter's sample"
_OF_A_PAIR = "rows or more out of both samples of each pair of voters"

METHODS: dict[str, Method] = {
    "hold_out": Method(
        "occam",
        _CLASSIFIER,
        _ONE_BEFORE,
        "Clopper and Pearson, Biometrika 1934",
        "held-out rows",
        whole_errors=True,
    ),
    "hold_out_best": Method(
        "occam",
        _CLASSIFIER,
        "all classifiers were fixed before the held-out rows were seen",
        "Clopper and Pearson, Biometrika 1934, with Bonferroni's inequality",
        "held-out rows",
        whole_errors=True,
    ),
    "hold_out_mean": Method(
        "occam_mean", _CLASSIFIER, _ONE_BEFORE, "Hoeffding, JASA 1963", "held-out rows"
    ),
    "occam_vote": Method("occam", _VOTE, _TREE_BEFORE, "Langford, JMLR 2005", whole_errors=True),
    "occam_mean": Method(
        "occam_mean",
        _VOTE,
        _TREE_BEFORE,
        "Hoeffding, JASA 1963, with the prior of Langford, JMLR 2005",
    ),
    "occam_answers": Method(
        "occam",
        "this vote's error, where it answers,",
        _TREE_BEFORE,
        "Langford, JMLR 2005, given which rows are answered",
        "weighing rows that it answers",
        whole_errors=True,
    ),
    "occam_pruning": Method("occam", _TREE, _BEFORE, "Langford, JMLR 2005", whole_errors=True),
    "every_leaf": Method(
        "occam_leaf",
        f"for all leaves at once, {_CLASSIFIER}",
        f"{_EVERY_BEFORE}; its leaves are the largest cells with one label of a tree fixed before",
        "Clopper and Pearson, Biometrika 1934, given how many rows each leaf has",
        "held-out rows in leaf {part}",
        whole_errors=True,
        where=" in leaf {part}",
    ),
    "every_cell": Method(
        "occam",
        f"for all cells at once, {_CLASSIFIER}",
        f"{_EVERY_BEFORE}; the cells are those of a tree that was fixed before",
        "Clopper and Pearson, Biometrika 1934, with Bonferroni's inequality",
        "held-out rows in cell {part}",
        whole_errors=True,
        where=" in cell {part}",
    ),
    "every_class": Method(
        "occam",
        f"for all classes at once, {_CLASSIFIER}",
        _EVERY_BEFORE,
        "Clopper and Pearson, Biometrika 1934, with Bonferroni's inequality",
        "held-out rows of class {part}",
        whole_errors=True,
        where=" of class {part}",
    ),
    "every_prediction": Method(
        "occam",
        f"for all predicted classes at once, {_CLASSIFIER}",
        _EVERY_BEFORE,
        "Clopper and Pearson, Biometrika 1934, with Bonferroni's inequality",
        "held-out rows that it takes for {part}",
        whole_errors=True,
        where=" that it takes for {part}",
    ),
    "every_group": Method(
        "occam",
        f"for all groups at once, {_CLASSIFIER}",
        _EVERY_BEFORE,
        "Clopper and Pearson, Biometrika 1934, with Bonferroni's inequality",
        "held-out rows of group {part}",
        whole_errors=True,
        where=" of group {part}",
    ),
    "every_gap": Method(
        "occam_gap",
        f"for all pairs of groups at once, {_CLASSIFIER} in the first less that in the second",
        _EVERY_BEFORE,
        "Clopper and Pearson, Biometrika 1934, with Bonferroni's inequality",
        "held-out rows of groups {part}",
        whole_errors=True,
        where=" of groups {part}",
        difference=True,
    ),
    "every_mix": Method(
        "occam_mix",
        f"for all mixes of classes at once, {_CLASSIFIER}",
        f"{_EVERY_BEFORE}; rows of a class are alike, however many of them there are",
        "the law of total probability, with the bounds of every_class",
        "held-out rows",
        whole_errors=True,
        where=" of classes mixed as {part}",
    ),
    "single_draw": Method(
        "single_draw",
        _TREE,
        f"{_BEFORE}; the tree was drawn once, and its draw counts like that of the rows",
        "Rivasplata, Kuzborskij, Szepesvari and Shawe-Taylor, NeurIPS 2020",
        "weighing rows and of the tree",
    ),
    "fixed_box": Method(
        "root_fragment",
        _TREE,
        "the box and the number of its cells were fixed without any row; there are two classes",
        "Scott and Nowak, NIPS 2003, Lemma 1",
        "rows that label, prune and certify",
        whole_errors=True,
    ),
    "gibbs_kl": Method("pac_bayes_kl", DRAWS, _BEFORE, "Maurer, arXiv:cs/0411099, 2004"),
    "gibbs_lambda": Method(
        "pac_bayes_lambda", DRAWS, _BEFORE, "Thiemann, Igel, Wintenberger and Seldin, ALT 2017"
    ),
    "vote_first_order": Method(
        "first_order", _VOTE, _BEFORE, "Langford and Shawe-Taylor, NeurIPS 2002"
    ),
    "vote_first_order_range": Method(
        "first_order_range", _VOTE, _BEFORE, "Leblanc and Germain, arXiv:2510.25569, 2025"
    ),
    "vote_tandem": Method(
        "tandem", _VOTE, _BEFORE, "Masegosa, Lorenzen, Igel and Seldin, NeurIPS 2020"
    ),
    "vote_either_wrong": Method(
        "either_wrong",
        _VOTE,
        _BEFORE,
        "Markov's inequality for pairs, as in Lacasse et al., ECML 2010",
    ),
    "vote_tuples": Method(
        "tuples",
        _VOTE,
        f"{_BEFORE}, and so was the list of tuples",
        "Lacasse, Laviolette, Marchand and Turgeon-Boutin, ECML 2010",
    ),
    "vote_c_bound": Method(
        "c_bound", _VOTE, _BEFORE, "Germain, Lacasse, Laviolette, Marchand and Roy, JMLR 2015"
    ),
    "vote_disagreement": Method(
        "disagreement",
        _VOTE,
        f"{_BEFORE}; there are two classes",
        "Masegosa, Lorenzen, Igel and Seldin, NeurIPS 2020",
    ),
    "absolute_error": Method(
        "occam_mean",
        "this regressor's mean absolute error",
        "the regressor, and where its errors are cut, were fixed before the held-out rows were seen",
        "Hoeffding, JASA 1963",
        "held-out rows",
    ),
    "absolute_error_pruning": Method(
        "occam_mean",
        "this tree's mean absolute error",
        "tree, means, prior and where errors are cut were fixed without the weighing rows",
        "Hoeffding, JASA 1963, with the prior of Langford, JMLR 2005",
    ),
    "band": Method(
        "occam",
        "the share of targets outside their bands",
        "the regressor and the proportions of its bands were fixed before the held-out rows were seen",
        "Wilks, Annals of Mathematical Statistics 1941",
        "held-out rows",
        whole_errors=True,
    ),
    "leaf_band": Method(
        "occam",
        "for all regions of the tree at once, the share of targets outside their bands",
        "the regressor and the regions were fixed before the held-out rows were seen",
        "Wilks, Annals of Mathematical Statistics 1941, given which rows lie in the region",
        "held-out rows in region {part}",
        whole_errors=True,
        where=" in region {part}",
    ),
    "prediction_set": Method(
        "occam",
        "the share of rows whose set lacks their class",
        _ORDER_BEFORE,
        "Wilks, Annals of Mathematical Statistics 1941; Vovk, ACML 2012",
        whole_errors=True,
    ),
    "class_set": Method(
        "occam",
        "for all classes at once, the share of rows whose set lacks their class",
        _ORDER_BEFORE,
        "Wilks, Annals of Mathematical Statistics 1941; Vovk, ACML 2012, given the classes of all rows",
        "weighing rows of class {part}",
        whole_errors=True,
        where=" of class {part}",
    ),
    "ensemble_first_order": Method(
        "first_order",
        _VOTE,
        _SAMPLES_BEFORE,
        "Lorenzen, Igel and Seldin, Machine Learning 2019",
        _OF_A_VOTER,
    ),
    "ensemble_tandem": Method(
        "tandem",
        _VOTE,
        _SAMPLES_BEFORE,
        "Masegosa, Lorenzen, Igel and Seldin, NeurIPS 2020",
        _OF_A_PAIR,
    ),
    "ensemble_either_wrong": Method(
        "either_wrong",
        _VOTE,
        _SAMPLES_BEFORE,
        "Markov's inequality for pairs, as in Lacasse et al., ECML 2010, on rows out of both samples",
        _OF_A_PAIR,
    ),
}


@dataclass(frozen=True, slots=True)
class Parts:
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
class Certificate:
    """An upper bound on the error on new rows, with all that it rests on.

    Parameters
    ----------
    method : str
        Row of `METHODS`.
    bound : float
        The error is at most this.
    delta : float
        Probability with which the promise may fail, over the draw of the rows.
    share : float
        Share of delta that this entry uses up.
    n : int
        Independent observations: rows, or groups of them.
    risk : float
        Error on these rows of what the certificate speaks about.
    observed : tuple of float
        The observed numbers that enter the bound.
    complexity : float
        Divergence from the prior, or minus the log of a prior mass (nats).
    grouped : bool
        Whether the observations are groups of rows.
    repeats : int or None
        Rows that also occur among those of the fit, and are genuine draws by the word of who has
        certified; None: the rows were not compared.
    part : str
        Name of the part of the rows that it speaks about; empty: all of them.
    shift : Shift or None
        How far the source of new rows may be from that of these; None: it is the same.
    unit : float or None
        What a loss of 1 stands for in units of the target, which is what larger ones count as; None:
        losses are errors, 0 or 1.
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

    def __post_init__(self) -> None:
        expect_settings(self)
        if not 0 <= self.bound <= 1:
            raise ValueError(f"bound must lie in 0 .. 1, got {self.bound!r}")

    @property
    def about(self) -> str:
        """What the certificate speaks about."""
        return METHODS[self.method].subject

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold for the promise to hold."""
        units = "groups of rows" if self.grouped else "rows"
        drawn = f"{units} are drawn independently, from the source that new ones come from"
        if self.shift is not None:
            drawn = f"{units} are drawn independently; {self.shift.assumption}"
        return drawn, METHODS[self.method].needs

    @property
    def log_delta(self) -> float:
        """Log of the probability with which this entry may fail."""
        return math.log(self.delta * self.share)

    @property
    def parts(self) -> Parts:
        """How much of the bound is observed error, complexity and confidence."""
        observed = self._limit
        alone = self._bound_of(self.n, 0.0)
        return Parts(observed, self.bound - alone, alone - observed)

    @property
    def _limit(self) -> float:
        """The bound that ever more rows like these would leave."""
        limit = min(max(inequality_of(self.method).limit(*self.observed), 0.0), 1.0)
        return moved(limit, self.shift)

    def _bound_of(self, n: int, complexity: float) -> float:
        """The bound with another number of rows or another complexity."""
        bound = inequality_of(self.method).bound
        return moved(bound(*self.observed, n, complexity, self.log_delta), self.shift)

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
        return self._bound_of(n, self.complexity)

    def at(self, delta: float) -> "Certificate":
        """The same promise with another probability, fixed without the rows, with which it may fail."""
        observed, risk, n, nats = self.observed, self.risk, self.n, self.complexity
        kind = self.grouped, self.part, self.shift
        certificate = certificate_of(self.method, observed, risk, n, nats, delta, self.share, *kind)
        return replace(certificate, repeats=self.repeats, unit=self.unit)

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
        shift = shift_nearby(kl, total_variation)
        if self.shift is not None:
            raise ValueError("the certificate speaks of another source already")
        self._expect_one_error("a source nearby")
        return replace(self, bound=moved(self.bound, shift), shift=shift)

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
        self._expect_one_error("a monitor")
        return Monitor(self.bound, alpha)

    def _expect_one_error(self, what: str) -> None:
        if METHODS[self.method].difference:
            raise ValueError(
                f"{what} takes a promise about one error, and {self.method} is about the difference "
                "of two"
            )

    def rows_needed(self, target: float) -> int | None:
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
        units = f"groups of {rows}" if self.grouped else rows
        given = f"{rows}, out of rows" if self.part else "rows given,"
        if self.repeats is None:
            units = f"{given} which were not compared with those of the fit"
        elif self.repeats:
            units = f"{given} of which {self.repeats:,} repeat rows of the fit"
        source = "the same source"
        if self.shift is not None:
            source, units = self.shift.source, units + self.shift.kept
        new = f"new rows{where} from {source}"
        if self.grouped:
            losses = "share of errors" if self.unit is None else "mean"
            new = f"new groups from {source}, the mean over groups of each group's {losses},"
        subject = method.subject
        if self.unit is not None:
            subject += f" (one beyond {self.unit:.4g} counts as that)"
        observed = f"observed on them: {self._observed}" if self.n else "there are none"
        return (
            f"With probability at least {100 * (1 - self.delta):.10g} % over the draw of the "
            f"{self.n:,} {units}, {subject} on {new} is at most "
            f"{self._promised} ({observed}; method: {self.method})."
        )

    @property
    def _promised(self) -> str:
        """The bound in words, rounded up: a promise must not become stronger in print."""
        if self.unit is None:
            return f"{math.ceil(1000 * self.bound - 1e-9) / 10:.1f} %"
        return f"{float(_DIGITS.create_decimal_from_float(self.bound * self.unit)):.4g}"

    @property
    def _observed(self) -> str:
        """The observed loss in words."""
        return f"{100 * self.risk:.1f} %" if self.unit is None else f"{self.risk * self.unit:.4g}"

    def _repr_html_(self) -> str:
        """The sentence, and the numbers below it."""
        parts = self.parts
        bound = math.ceil(10_000 * self.bound - 1e-9) / 10_000
        unit, digits = (1.0, ".4f") if self.unit is None else (self.unit, ".4g")
        lines = [
            ["bound on the error", self._promised if self.unit else f"{bound:.4f}"],
            ["observed error", f"{self.risk * unit:{digits}}"],
            ["part of the bound: observed", f"{parts.observed * unit:{digits}}"],
            ["part of the bound: complexity", f"{parts.complexity * unit:{digits}}"],
            ["part of the bound: confidence", f"{parts.confidence * unit:{digits}}"],
            ["groups of rows" if self.grouped else "rows", f"{self.n:,}"],
            ["probability that it fails", f"{self.delta:.4g}"],
            ["method", self.method],
        ]
        return html_table(str(self), [], lines)


def moved(bound: float, shift: Shift | None) -> float:
    """What a bound becomes for another source of new rows."""
    return bound if shift is None else shift.worst(bound)


def inequality_of(method: str) -> Inequality:
    """The inequality by which a row of `METHODS` certifies."""
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    return INEQUALITIES[METHODS[method].inequality]


def log_chance(delta: float, share: float = 1.0) -> float:
    """Check the probability with which a promise may fail and its share; returns the log of both."""
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie between 0 and 1, got {delta!r}")
    if not 0 < share <= 1:
        raise ValueError(f"share must lie in (0, 1], got {share!r}")
    if not delta * share > 0:
        raise ValueError(f"delta and share are too small, got {delta!r} and {share!r}")
    return math.log(delta * share)


def certificate_of(
    method: str,
    observed: tuple[float, ...],
    risk: float,
    n: int,
    complexity: float,
    delta: float,
    share: float,
    grouped: bool = False,
    part: str = "",
    shift: Shift | None = None,
) -> Certificate:
    """Bound an error by one row of `METHODS`; the parameters are those of `Certificate`.

    Raises
    ------
    ValueError
        If `delta` or `share` is out of range, or the rows come in groups and must not.
    """
    log_delta = log_chance(delta, share)
    inequality = inequality_of(method)
    if not _fewest(method) <= n <= _MOST_ROWS:
        raise ValueError(f"n must lie in {_fewest(method)} .. {_MOST_ROWS}, got {n!r}")
    if grouped and METHODS[method].whole_errors:
        usable = ", ".join(name for name, other in METHODS.items() if not other.whole_errors)
        raise ValueError(
            f"{method} counts whole errors of independent rows, but these come in groups; "
            f"expected one of {usable}"
        )
    bound = inequality.bound(*observed, int(n), complexity, log_delta)
    entries = (delta, share, n, risk, observed, complexity, grouped)
    return Certificate(method, moved(bound, shift), *entries, part=part, shift=shift)


def _fewest(method: str) -> int:
    """A part of the rows may be empty."""
    return 0 if METHODS[method].where else 1


def restored_certificate(entries: dict[str, Any]) -> Certificate:
    """A certificate by its fields, as a file holds them: the bound is computed again.

    What was observed has to be believed, as the rows are not there.

    Raises
    ------
    ValueError
        If a field is missing or out of range, or the bound is below what the others give.
    """
    names = {field.name for field in fields(Certificate)}
    if not isinstance(entries, dict) or set(entries) != names:
        raise ValueError(f"expected a certificate with {sorted(names)}, got {entries!r}")
    shift = entries["shift"]
    if shift is not None and (not isinstance(shift, dict) or set(shift) != {"kind", "most"}):
        raise ValueError(f"shift must be None or a kind and how much at most, got {shift!r}")
    observed = tuple(entries["observed"])
    shift = None if shift is None else Shift(**shift)
    given = Certificate(**{**entries, "observed": observed, "shift": shift})
    if given.method not in METHODS:
        raise ValueError(f"unknown method {given.method!r}")
    _expect_observed(given)
    again = given.at(given.delta)
    # Logarithms of other platforms differ in their last digits.
    if not given.bound >= again.bound - _ROUNDING:
        raise ValueError(
            f"the certificate of {given.method} says at most {given.bound:.6g}, but what it observed "
            f"gives {again.bound:.6g}"
        )
    return given


def _expect_observed(given: Certificate) -> None:
    if type(given.n) is not int or not _fewest(given.method) <= given.n <= _MOST_RESTORED:
        raise ValueError(f"n must be a number of rows, got {given.n!r}")
    numbers = (given.delta, given.share, given.risk, given.complexity, *given.observed)
    if not all(type(one) in (int, float) and math.isfinite(one) for one in numbers):
        raise ValueError(f"a certificate must hold finite numbers, got {numbers}")
    if given.repeats is not None and (type(given.repeats) is not int or given.repeats < 0):
        raise ValueError(f"repeats must be a number of rows or None, got {given.repeats!r}")
    if not 0 <= given.risk <= 1:
        raise ValueError(f"risk must lie in 0 .. 1, got {given.risk!r}")
    if given.unit is not None and not (
        type(given.unit) in (int, float) and 0 < given.unit < math.inf
    ):
        raise ValueError(f"unit must be a positive number or None, got {given.unit!r}")
    if given.complexity < 0 and given.method != "single_draw":
        raise ValueError(f"complexity must not be negative, got {given.complexity!r}")


@checked
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
