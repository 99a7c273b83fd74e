"""The section of the report on the certificate: the bound, its terms, and further guarantees."""

from typing import Any

from certree.certificates import Certificate
from certree.certificates.subsets.families import CertificateFamily
from certree.estimators import CertifiedTreeClassifier, CertifiedTreeRegressor
from certree.interface.formatting import format_bound, format_quantity
from certree.show.certificate_picture import draw_bound_by_rows
from certree.show.page.evaluated_model import EvaluatedModel
from certree.show.page.markup import Html, collapse, concatenate, embed_figure, table, tag
from certree.show.page.section import Section

# Most rules that are listed.
_MAX_RULES = 24


def build_certificate_section(evaluated: EvaluatedModel) -> Section | None:
    """Return the report's section on the certificate, or None if the model has no certificate.

    The section has the bound on the error, how much of it is due to observed errors, to the choice
    among prunings (subtrees that remain after cutting branches) and to the number of rows, the
    assumptions, and guarantees for classes and leaves. evaluated: the fitted model, the rows of the
    report and their predictions; only the model, whose fit made the certificate, is used.
    """
    certificate = getattr(evaluated.model, "certificate_", None)
    if not isinstance(certificate, Certificate):
        return None
    factor, unit, digits = 100.0, " percentage points", ".1f"
    title = f"Certificate: the error is at most {format_bound(certificate.bound)}"
    if certificate.unit is not None:
        factor, unit, digits = 1.0, "", ".4g"
        title = "Certificate: a bound on the mean error"
    terms = certificate.parts
    text = (
        f"The bound is the sum of {factor * terms.observed:{digits}}{unit} of observed error, "
        f"{factor * terms.complexity:{digits}} for the choice among prunings, and "
        f"{factor * terms.confidence:{digits}} for the finite number of rows."
    )
    assumptions = tag("ul", *(tag("li", assumption) for assumption in certificate.assumptions))
    if evaluated.threshold is not None:
        text += " All bounds of this section are about the most probable class, at no threshold."
    content = tag("p", str(certificate), class_="guarantee") + tag("p", text)
    content += tag("p", "Assumptions:") + assumptions + _build_full_certificate(evaluated.model)
    content += _build_rules(evaluated.model, evaluated.pos_label)
    content += _build_further_guarantees(evaluated.model, certificate)
    return Section("certificate", title, content)


def _build_full_certificate(model: Any) -> Html:
    """Return a sentence as HTML with the bound on the error of the vote of all prunings.

    A pruning is the tree with some nodes made leaves. A model with this bound, `full_certificate_`,
    predicts by a single pruning, as its `max_leaf_nodes` was set; the sentence is for comparison.
    model: a fitted model. The result is empty if its `full_certificate_` is None or missing.
    """
    full = getattr(model, "full_certificate_", None)
    if full is None:
        return Html("")
    return tag("p", f"For comparison, the vote of all prunings of the whole tree: {full}")


def _build_further_guarantees(model: Any, certificate: Certificate) -> Html:
    """Return HTML with the bound by number of calibration rows, and tables of guarantees.

    The tables have the recall of each class and the precision of each predicted class. A model
    without `guarantees_` (bounds from its calibration set) has only the figure of the bound. If the
    calibration set is missing or allows no guarantees, a sentence says so instead. The result is
    empty for a regressor. model: the fitted model. certificate: the certified bound on its error.
    """
    if certificate.unit is not None:
        return Html("")
    if not hasattr(model, "guarantees_"):
        return _build_bound_by_rows(certificate)
    reason: str | None = "its model file does not hold the calibration set"
    if model.guarantees_ is not None:
        reason = model.guarantees_.explain_missing_guarantees()
    if reason is not None:
        return tag("p", f"There are no further guarantees: {reason}.")
    families = model.conditional_guarantees(["recall", "precision"])
    text = tag(
        "p",
        "All rows of a table hold together, with the probability that the table states. Each table has "
        "a probability of its own.",
    )
    tables = [
        _build_family_table("Certified recall of each class", families.recall),
        _build_family_table("Certified precision of each predicted class", families.precision),
    ]
    return _build_bound_by_rows(certificate) + text + concatenate(tables)


def _build_bound_by_rows(certificate: Certificate) -> Html:
    """Return HTML with the figure of the bound against the number of calibration rows.

    A sentence before the figure explains it: the curve assumes that the observed error stays the
    same, so it is no guarantee. certificate: the certified bound on the error of the fitted model.
    """
    text = (
        "The bound for other sizes of the calibration set, if the observed error stayed the same. "
        "Use it for planning; it is not a guarantee."
    )
    return tag("p", text) + embed_figure(draw_bound_by_rows(certificate), text)


def _build_rules(model: Any, pos_label: Any) -> Html:
    """Return the rules of a certified tree as an HTML table, at most 24; empty for other models.

    A rule is the condition of a leaf. A line of the table has its number if rules have numbers, its
    conditions, prediction, numbers of training and calibration rows, and the bound on its error. The
    sentence above has the joint probability of the bounds, or why there are none. The page hides the
    table until the reader opens it, unless rules have numbers. model: the fitted model; pos_label:
    class whose probability each rule shows, or None for that of its predicted class.
    """
    if not isinstance(model, CertifiedTreeClassifier | CertifiedTreeRegressor):
        return Html("")
    rules = model.rules(_MAX_RULES, pos_label=pos_label)
    headings, rows = rules.table()
    has_numbers = rules[0].number is not None
    css_class = "rules" if has_numbers else None
    content = tag("p", rules.title) + tag("div", table(headings, rows, "Rules"), class_=css_class)
    if len(rules) < model.get_n_leaves():
        n_leaves = format_quantity(model.get_n_leaves(), "leaf", "leaves")
        text = f"The tree has {n_leaves}; each rule stands for the leaves below one node."
        content = tag("p", text) + content
    title = "Rules" if rules.delta is None else "Rules and their error bounds"
    if has_numbers:
        return tag("h3", title) + content
    return collapse(title, content)


def _build_family_table(summary: str, family: CertificateFamily) -> Html:
    """Return the table of a family of guarantees as HTML, hidden until the reader opens it.

    Its columns are the subset of the rows, such as a class, its number of calibration rows, its
    observed error and the bound. summary: the text on which the reader clicks. family: guarantees
    of one kind, such as one for each class, that hold together; each is a line of the table.
    """
    headings, rows = family.table()
    return collapse(summary, table(headings, rows, family.title))
