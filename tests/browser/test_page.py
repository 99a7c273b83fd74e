"""The report in a real browser: Chromium without a window, driven by Selenium."""

import re

import numpy as np
import pandas as pd
import pytest

from browser.conftest import files_asked_for, forget, show
from certree import (
    BoostedTreesClassifier,
    CertifiedTreeClassifier,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    TreeForestClassifier,
)
from certree.interface.formatting import format_bound
from certree.show import report

pytest.importorskip("selenium", reason="selenium is not installed: make browser")
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

# What must be shown as it is, and do nothing.
SCRIPT, IMAGE = "</script><script>document.title='broken'</script>", "<img src=x onerror=alert(1)>"
QUOTED, SNOW = "\"a\" & 'b' <i>", "雪 ünïcode $title \u2028"
WIDTHS = (360, 768, 1600)


def strange(n=600, seed=0):
    """A table whose names are markup, with categories and missing values."""
    rng = np.random.default_rng(seed)
    height = rng.normal(size=n)
    town = rng.choice([QUOTED, SNOW, "Bern"], n)
    frame = pd.DataFrame(
        {SCRIPT: height, "town": pd.Categorical(town), "age": rng.integers(1, 9, n)}
    )
    frame.loc[rng.random(n) < 0.1, SCRIPT] = np.nan
    odds = 2 * np.nan_to_num(height) + 2.0 * (town == SNOW) + 0.3 * frame["age"] - 2
    y = np.where(odds + 0.5 * rng.normal(size=n) > 0, IMAGE, "plain")
    return frame, y


X, Y = strange()
MODELS = {
    "tree": PACBayesTreeClassifier(random_state=0).fit(X[:400], Y[:400]),
    "certified": CertifiedTreeClassifier(duplicates="genuine", random_state=0).fit(
        X[:400], Y[:400]
    ),
    "small": CertifiedTreeClassifier(max_leaf_nodes=6, duplicates="genuine", random_state=0).fit(
        X[:400], Y[:400]
    ),
    "boosted": BoostedTreesClassifier(max_iter=20, random_state=0).fit(X[:400], Y[:400]),
    "forest": TreeForestClassifier(5, random_state=0).fit(X[:400], Y[:400]),
    "numbers": PACBayesTreeRegressor(random_state=0).fit(X[:400], X["age"][:400] * 1e4),
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    place = tmp_path_factory.mktemp("pages")
    targets = {"numbers": X["age"][400:] * 1e4}
    return {
        name: report(model, X[400:], targets.get(name, Y[400:]), place / f"{name}.html")
        for name, model in MODELS.items()
    }


@pytest.fixture
def seen(browser, pages):
    """A function that opens a page at a width; afterwards no errors and no requests are allowed."""
    forget(browser)
    yield lambda name, width=1280, scheme="light": show(browser, pages[name], width, scheme)
    assert browser.get_log("browser") == []
    asked = files_asked_for(browser)
    assert asked
    assert asked <= {str(page) for page in pages.values()}


def items(page):
    return [
        one for one in page.find_elements(By.CSS_SELECTOR, "[role=treeitem]") if one.is_displayed()
    ]


def focused(page):
    return page.switch_to.active_element


def label(item):
    """Return the accessible name of an item, with single spaces."""
    return " ".join(item.get_attribute("aria-label").split())


def press(page, *keys):
    for key in keys:
        focused(page).send_keys(key)


def shown_button(page, words):
    return page.find_element(By.XPATH, f"//button[text()='{words}' or @aria-label='{words}']")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", MODELS)
def test_a_page_fits_any_width(seen, name, width):
    page = seen(name, width)
    overflow = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.execute_script(overflow) == 0
    for fold in page.find_elements(By.TAG_NAME, "summary"):
        fold.click()
    page.execute_script("document.querySelectorAll('button')[0].click()")
    assert page.execute_script(overflow) == 0
    assert len(page.find_elements(By.CSS_SELECTOR, "main section")) >= 5


def test_the_explorer_shows_numbers_missing_values_and_bounds_of_rules(seen):
    page, model = seen("small"), MODELS["small"]
    shown = [
        " ".join(one.text.split()) for one in items(page) if not one.get_attribute("aria-expanded")
    ]
    lines = [line for line in model.export_text(64).splitlines() if re.search(r"R\d+: ", line)]
    assert len(shown) == len(lines) == model.get_n_leaves() > 2
    for text, line, rule in zip(shown, lines, model.rules(64), strict=True):
        assert text.startswith(f"{rule.number}: ")
        assert ("(or missing)" in text) == ("(or missing)" in line)
        bound = format_bound(rule.error_at_most)
        assert text.endswith(f"{rule.calibration_rows} calibration rows, error at most {bound}")


def test_names_that_are_markup_are_shown_and_do_nothing(seen):
    page = seen("tree")
    assert page.title == "PACBayesTreeClassifier on 200 rows"
    words = page.find_element(By.TAG_NAME, "body").text
    assert SCRIPT in words
    assert IMAGE in words
    options = page.find_elements(By.CSS_SELECTOR, "#value-1 option")
    assert QUOTED in [one.get_attribute("textContent") for one in options]
    assert page.find_elements(By.CSS_SELECTOR, "img") == []
    assert len(page.find_elements(By.TAG_NAME, "script")) == 2


def test_the_colours_follow_the_scheme(seen):
    def brightness(scheme, selector, what):
        page = seen("certified", scheme=scheme)
        found = page.find_element(By.CSS_SELECTOR, selector).value_of_css_property(what)
        return sum(float(part) for part in found.split("(")[1].rstrip(")").split(",")[:3]) / 3

    assert brightness("light", "body", "background-color") > 240
    assert brightness("dark", "body", "background-color") < 50
    for selector, what in (("body", "color"), (".picture text", "fill")):
        assert brightness("light", selector, what) < 60
        assert brightness("dark", selector, what) > 200


def test_a_tree_is_walked_by_keyboard(seen):
    page = seen("tree")
    shown_button(page, "Collapse all").click()
    assert [label(one).split(",")[0] for one in items(page)] == ["all rows"]
    root = items(page)[0]
    page.execute_script("arguments[0].focus()", root)
    press(page, Keys.ARROW_RIGHT)
    assert root.get_attribute("aria-expanded") == "true"
    assert len(items(page)) == 3
    press(page, Keys.ARROW_RIGHT)
    assert focused(page) == items(page)[1]
    assert focused(page).get_attribute("aria-level") == "2"
    press(page, Keys.ARROW_DOWN)
    assert focused(page) == items(page)[2]
    press(page, Keys.END)
    assert focused(page) == items(page)[-1]
    press(page, Keys.ARROW_UP, Keys.ENTER)
    assert focused(page).get_attribute("aria-expanded") == "true"
    press(page, Keys.ENTER, Keys.ARROW_LEFT)
    assert focused(page) == root
    press(page, Keys.ARROW_LEFT)
    assert len(items(page)) == 1
    # One stop of the tab key for all of the tree.
    assert len(page.find_elements(By.CSS_SELECTOR, '[role=treeitem][tabindex="0"]')) == 1


def test_everything_can_be_reached_by_the_tab_key(seen):
    page = seen("boosted")
    page.execute_script("document.body.focus()")
    reached = set()
    for _ in range(80):
        page.switch_to.active_element.send_keys(Keys.TAB)
        reached.add(
            page.execute_script(
                "return document.activeElement.id || document.activeElement.tagName"
            )
        )
    assert {"search", "picked", "chosen", "A", "BUTTON", "SUMMARY", "LI"} <= reached


def test_a_feature_is_found(seen):
    page = seen("tree")
    tree = MODELS["tree"].tree_
    search = page.find_element(By.ID, "search")
    search.send_keys("TOWN")
    splits = int((tree.feature[tree.left >= 0] == 1).sum())
    told = page.find_element(By.CSS_SELECTOR, ".tools [role=status]")
    assert told.text in (f"{splits} splits use it", f"{splits} split uses it")
    search.send_keys(Keys.ENTER)
    assert told.text.startswith(f"1 of {2 * splits} nodes: town ")
    marked = [one for one in page.find_elements(By.CSS_SELECTOR, ".found") if one.is_displayed()]
    assert marked
    assert all(label(one).startswith("town ") for one in marked)
    search.clear()
    search.send_keys("nothing like it")
    assert told.text == "0 splits use it"
    assert page.find_elements(By.CSS_SELECTOR, ".found") == []


def test_a_row_that_is_picked_ends_where_the_model_says(seen):
    page, model = seen("tree"), MODELS["tree"]
    picked = Select(page.find_element(By.ID, "picked"))
    for option in [one.text for one in picked.options][1:]:
        picked.select_by_visible_text(option)
        i = int(option.split(":")[0].removeprefix("row "))
        answer = page.find_element(By.CSS_SELECTOR, ".answer")
        steps = [one.text for one in answer.find_elements(By.TAG_NAME, "li")]
        path = model.path(X[400:].iloc[[i]])
        averaged = "averages over both children" in answer.text
        if not averaged:
            assert len(steps) == len(path)
            share = model.predict_proba(X[400:].iloc[[i]])[0, 1]
            said = float(answer.find_element(By.TAG_NAME, "b").text.split(": ")[-1].rstrip(" %"))
            assert said == pytest.approx(100 * share, abs=0.51)
            passed = page.find_elements(By.CSS_SELECTOR, ".passed")
            assert len(passed) == len(path)
            assert label(passed[-1]).startswith(" ".join(steps[-1].rsplit(": ", 2)[0].split()))


def test_a_row_is_typed_in_by_keyboard(seen):
    page, model = seen("tree"), MODELS["tree"]
    page.find_element(By.XPATH, "//summary[text()='Values of the row']").send_keys(Keys.ENTER)
    page.find_element(By.ID, "value-0").send_keys("1.25")
    Select(page.find_element(By.ID, "value-1")).select_by_visible_text(QUOTED)
    page.find_element(By.ID, "value-2").send_keys("3", Keys.ENTER)
    row = pd.DataFrame({SCRIPT: [1.25], "town": pd.Categorical([QUOTED]), "age": [3]})
    answer = page.find_element(By.CSS_SELECTOR, ".answer")
    assert len(answer.find_elements(By.TAG_NAME, "li")) == len(model.path(row))
    said = float(answer.find_element(By.TAG_NAME, "b").text.split(": ")[-1].rstrip(" %"))
    assert said == pytest.approx(100 * model.predict_proba(row)[0, 1], abs=0.51)
    page.find_element(By.ID, "value-2").send_keys("x", Keys.ENTER)
    assert answer.text == "age must be a number or empty, got 3x"
    assert page.find_elements(By.CSS_SELECTOR, ".passed") == []
    shown_button(page, "Clear").click()
    assert page.find_element(By.ID, "value-2").get_attribute("value") == ""


def test_a_tree_is_made_larger_and_smaller(seen):
    page = seen("tree")

    def size():
        return float(
            page.find_element(By.CSS_SELECTOR, ".tree").value_of_css_property("font-size")[:-2]
        )

    before = size()
    shown_button(page, "Larger").click()
    assert size() == pytest.approx(1.1 * before)
    for _ in range(30):
        shown_button(page, "Smaller").click()
    assert size() == pytest.approx(0.5 * before)


def test_trees_of_an_ensemble_take_turns(seen):
    page = seen("boosted")
    chosen = Select(page.find_element(By.ID, "chosen"))
    assert [one.text for one in chosen.options] == [f"tree {i} of 20" for i in (1, 2, 3)]
    first = [label(one) for one in items(page)]
    chosen.select_by_index(2)
    assert [label(one) for one in items(page)] != first
    assert label(items(page)[0]).endswith("200 rows")
    Select(page.find_element(By.ID, "picked")).select_by_index(1)
    assert page.find_elements(By.CSS_SELECTOR, ".passed")


def test_sections_have_headings_and_pictures_have_words(seen):
    page = seen("certified")
    for section in page.find_elements(By.CSS_SELECTOR, "main section"):
        heading = page.find_element(By.ID, section.get_attribute("aria-labelledby"))
        assert heading.text
        link = page.find_element(By.CSS_SELECTOR, f'nav a[href="#{section.get_attribute("id")}"]')
        assert link.text == heading.text
    for drawn in page.find_elements(By.CSS_SELECTOR, "main svg"):
        assert drawn.get_attribute("role") == "img"
        assert drawn.get_attribute("aria-label")
    assert str(MODELS["certified"].certificate_) in page.find_element(By.TAG_NAME, "main").text
