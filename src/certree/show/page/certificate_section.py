"""What is promised: the certificate, what more rows would bring, and promises on parts."""

from dataclasses import replace
from typing import Any

from certree.certificates import Certificate
from certree.certificates.parts.families import CertificateFamily
from certree.estimators import CertifiedTreeClassifier
from certree.interface.formatting import format_bound
from certree.show.certificate_picture import draw_by_rows
from certree.show.page.judged import Judged
from certree.show.page.markup import Html, folded, joined, picture, table, tag
from certree.show.page.section import Section

# Rules whose errors are listed.
_RULES = 24


def certificate(judged: Judged) -> Section | None:
    """What is promised."""
    promised = getattr(judged.model, "certificate_", None)
    if not isinstance(promised, Certificate):
        return None
    unit, points, digits = 100.0, " points", ".1f"
    title = f"What is promised: at most {format_bound(promised.bound)} errors"
    if promised.unit is not None:
        unit, points, digits = 1.0, "", ".4g"
        title = "What is promised: a bound on the mean error"
    parts = promised.parts
    made = (
        f"Of the bound {unit * parts.observed:{digits}}{points} are observed errors, "
        f"{unit * parts.complexity:{digits}} the price of choosing among prunings, and "
        f"{unit * parts.confidence:{digits}} the price of few rows."
    )
    needs = tag("ul", *(tag("li", each) for each in promised.assumptions))
    shown = tag("p", str(promised), class_="promise") + tag("p", made)
    shown += tag("p", "It holds if") + needs + _beside(judged.model)
    shown += _more(judged.model, promised)
    return Section("certificate", title, shown)


def _beside(model: Any) -> Html:
    """What the vote of a whole tree would promise in place of a small one."""
    full = getattr(model, "full_certificate_", None)
    if full is None:
        return Html("")
    return tag("p", f"The vote of all prunings of the whole tree, in place of this one: {full}")


def _more(model: Any, promised: Certificate) -> Html:
    """What else there is to say, or why there is nothing."""
    if promised.unit is not None:
        return Html("")
    if not hasattr(model, "guarantees_"):
        return _by_rows(promised)
    why: str | None = "its model file does not keep the rows of the fit"
    if model.guarantees_ is not None:
        why = model.guarantees_.why_no_guarantees()
    if why is not None:
        return tag("p", f"No more is promised: {why}.")
    families = model.conditional_guarantees(["recall", "precision"])
    told = tag(
        "p", "All lines of a table hold at once, each table by itself with its own probability."
    )
    tables = [
        _table("Recall of each class", families.recall),
        _table("Precision of each predicted class", families.precision),
    ]
    if isinstance(model, CertifiedTreeClassifier):
        tables.append(_table("Error of each rule", _of_rules(model)))
    return _by_rows(promised) + told + joined(tables)


def _by_rows(promised: Certificate) -> Html:
    words = (
        "The bound that other numbers of certifying rows would give, if the error stayed as observed. "
        "It is to plan by, and promises nothing."
    )
    return tag("p", words) + picture(draw_by_rows(promised), words)


def _of_rules(model: Any) -> CertificateFamily:
    """Certificates of the cells of rules, those with the most certifying rows first."""
    cells: CertificateFamily = model._certified_cells()
    named = {
        rule.node: replace(cells.parts[rule.node], name=f"{rule.condition}: {rule.prediction}")
        for rule in model.rules(_RULES)
    }
    order = sorted(named, key=lambda node: -named[node].n)
    return replace(cells, parts={node: named[node] for node in order})


def _table(summary: str, family: CertificateFamily) -> Html:
    head, lines = family.table()
    return folded(summary, table(head, lines, family.title))
