"""The pictures of docs/images that are no experiment: `make images`.

Needs CERTREE_DATA. Half of the rows of adult fit, the others judge, by seed 0, unless a page says
otherwise. The report is photographed by Chromium, if that, its driver and Selenium are there.

`evidence.png` is drawn by `python -m benchmarks.evidence`, `certificates.png` by
`examples/certificates_by_rows.py`, `rates.png` and `table2.png` by the commands `rates` and `table2`.
"""

import io
import os
import re
import shutil
import sys
import tempfile
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.ticker import PercentFormatter
from sklearn.datasets import make_friedman1, make_moons
from sklearn.model_selection import train_test_split

from certree import (
    BoostedTreesClassifier,
    CertifiedBoostedTreesClassifier,
    CertifiedTreeClassifier,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    TreeForestRegressor,
)
from certree.explain import interaction_fractions
from certree.show import (
    plot_calibration,
    plot_certificate,
    plot_explanation,
    plot_importance,
    plot_interactions,
    plot_loss,
    plot_regions,
    plot_selective,
    plot_thresholds,
    plot_tree,
    report,
)
from certree.show.picture import Picture

IMAGES = Path(__file__).parent / "images"


def table(name: str) -> tuple[pd.DataFrame, pd.Series]:
    """A table of CERTREE_DATA, its target last; words are categories."""
    directory = Path(os.environ["CERTREE_DATA"])
    place = next(
        one for one in (directory, directory / "more") if (one / f"{name}.parquet").exists()
    )
    frame = pd.read_parquet(place / f"{name}.parquet")
    words = [one for one in frame.columns[:-1] if not pd.api.types.is_numeric_dtype(frame[one])]
    return frame[frame.columns[:-1]].astype(dict.fromkeys(words, "category")), frame[
        frame.columns[-1]
    ]


def draw(name: str, picture: Picture) -> None:
    """Keep a picture."""
    picture.savefig(IMAGES / f"{name}.png", dpi=100)
    sys.stdout.write(f"{name}.png\n")


def photograph(model: Any, X: pd.DataFrame, y: pd.Series) -> None:
    """The report of a model: how it begins, and its explorer in dark colours, a row followed."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (find_spec("selenium") and chromium and driver):
        sys.stdout.write("no pictures of the report: they need Chromium, its driver and Selenium\n")
        return
    from selenium import webdriver
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import Select

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--hide-scrollbars"):
        options.add_argument(argument)
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    with started as page, tempfile.TemporaryDirectory() as folder:
        report(model, X, y, Path(folder) / "report.html")
        for name, height, scheme in (("report", 1300, "light"), ("report_explorer", 1150, "dark")):
            media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
            page.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
            size = {"width": 1000, "height": height, "deviceScaleFactor": 1, "mobile": False}
            page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            page.get((Path(folder) / "report.html").as_uri())
            if scheme == "dark":
                Select(page.find_element(By.ID, "picked")).select_by_index(1)
                section = "arguments[0].closest('section').scrollIntoView()"
                page.execute_script(section, page.find_element(By.CSS_SELECTOR, ".tree"))
            page.save_screenshot(str(IMAGES / f"{name}.png"))
            sys.stdout.write(f"{name}.png\n")


def of_adult() -> None:
    """All pictures of adult."""
    X, y = table("adult")
    words = {"categorical_features": "from_dtype", "random_state": 0}
    X_fit, X_new, y_fit, y_new = train_test_split(X, y, test_size=0.5, random_state=0)
    tree = PACBayesTreeClassifier(**words).fit(X_fit, y_fit)
    draw("tree", plot_tree(tree, max_leaves=8))
    draw("explanation_adult", plot_explanation(tree.explain(X_new[:10]), row=0))
    draw("calibration_adult", plot_calibration(tree, X_new, y_new))
    draw("importance_adult", plot_importance(tree))
    photograph(tree, X_new, y_new)
    certified = CertifiedTreeClassifier(**words)
    draw("certificate_adult", plot_certificate(certified, X, y))
    draw("selective_adult", plot_selective(certified.fit(X_fit, y_fit)))
    boosted = CertifiedBoostedTreesClassifier(**words).fit(X_fit[:5000], y_fit[:5000])
    draw("thresholds_adult", plot_thresholds(boosted.guarantees_.thresholds(costs=(5, 1)), 5, 1))
    rounds = BoostedTreesClassifier(max_iter=1600, **words).fit(X_fit, y_fit)
    draw("loss_adult", plot_loss(rounds, X_new[:3000], y_new[:3000]))


def of_others() -> None:
    """Trees of ten classes and of numbers, regions of a plane, interactions in Friedman's table."""
    tree = PACBayesTreeClassifier(random_state=0).fit(*table("pendigits"))
    draw("tree_pendigits", plot_tree(tree, max_leaves=24))
    numbers = PACBayesTreeRegressor(random_state=0).fit(*table("california_housing"))
    draw("tree_california", plot_tree(numbers, max_leaves=8))
    X, y = make_moons(600, noise=0.3, random_state=0)
    draw("regions_moons", plot_regions(PACBayesTreeClassifier(random_state=0).fit(X, y), X, y))
    X, y = make_friedman1(1000, random_state=0)
    # As in docs/guide/shapley_values.md.
    model = TreeForestRegressor(max_depth=6, random_state=0).fit(X, y)
    draw(
        "interactions_friedman", plot_interactions(interaction_fractions(model, X), max_features=6)
    )


def run_page(name: str) -> dict[str, Any]:
    """Run the code of a page of docs/guide, and return its variables."""
    text = (IMAGES.parent / "guide" / f"{name}.md").read_text(encoding="utf-8")
    variables: dict[str, Any] = {}
    with redirect_stdout(io.StringIO()):
        for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
            exec(code, variables)
    return variables


def of_time() -> None:
    """Coverage and width of fixed and of adaptive intervals by week, of docs/guide/time.md."""
    page = run_page("time")
    rows = page["month"] >= 7
    frame = pd.DataFrame({"week": page["hour"][rows].to_period("W").start_time})
    figure = Picture(figsize=(8, 4.5), layout="constrained")
    above, below = figure.subplots(2, sharex=True)
    for name, colour in (("fixed", "tab:orange"), ("adapted", "tab:blue")):
        low, high = page[name][rows].T
        target = page["minutes"][rows].to_numpy()
        frame["covered"], frame["width"] = (low <= target) & (target <= high), high - low
        weeks = frame.groupby("week").mean()
        label = {"fixed": "fixed", "adapted": "adaptive"}[name]
        above.plot(weeks.index, weeks["covered"], "o-", markersize=3, color=colour, label=label)
        below.plot(weeks.index, weeks["width"], "o-", markersize=3, color=colour, label=label)
    above.axhline(0.9, color="grey", linestyle=":")
    above.set(ylabel="targets in intervals", ylim=(0, 1.05))
    above.yaxis.set_major_formatter(PercentFormatter(1))
    above.legend(loc="lower left")
    below.set(ylabel="mean width, minutes", ylim=(0, None))
    for axes in (above, below):
        axes.axvline(pd.Timestamp("2025-10-01"), color="grey", linestyle="--")
    below.annotate("road closed", (pd.Timestamp("2025-10-02"), 1), color="grey")
    draw("adaptive_intervals", figure)


if __name__ == "__main__":
    np.seterr(all="raise", under="ignore")
    of_adult()
    of_others()
    of_time()
