"""The site as `make docs` has built it: its links, what it asks for, and how it looks in a browser."""

import re
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from browser.conftest import PROJECT, SITE, files_asked_for, forget, needs_site, show

pytestmark = needs_site

MAIN = (
    "index.html",
    "start/ten_minutes.html",
    "howto/index.html",
    "howto/certify.html",
    "gallery/index.html",
    "gallery/plot_thresholds.html",
    "reference/index.html",
    "reference/names/certree.BoostedTreesClassifier.html",
    "guide/index.html",
    "guide/boosting.html",
    "compare/index.html",
    "compare/coming_from.html",
    "glossary.html",
    "search.html",
)
# What a browser fetches by itself. A link that somebody may click on is no such thing.
FETCHED = {
    ("link", "href"), ("script", "src"), ("img", "src"), ("img", "srcset"), ("source", "src"),
    ("source", "srcset"), ("iframe", "src"), ("video", "src"), ("object", "data"), ("use", "href"),
}  # fmt: skip


class Page(HTMLParser):
    """What a page fetches, where it leads, and its anchors."""

    def __init__(self, path):
        super().__init__()
        self.fetched, self.links, self.anchors = [], [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        told = dict(attributes)
        self.anchors.update(told[name] for name in ("id", "name") if told.get(name))
        if tag == "link" and told.get("rel") in ("canonical", "prev", "next", "search", "index"):
            return
        self.fetched += [told[name] for of, name in FETCHED if of == tag and told.get(name)]
        if tag == "a" and told.get("href"):
            self.links.append(told["href"])


@cache
def pages():
    """Every page of the site."""
    return {path: Page(path) for path in sorted(SITE.rglob("*.html"))}


def test_the_site_is_whole():
    assert len(pages()) > 250
    missing = [page for page in MAIN if not (SITE / page).exists()]
    assert not missing


def test_no_page_fetches_anything_from_outside():
    outside = [
        (str(path.relative_to(SITE)), url)
        for path, page in pages().items()
        for url in page.fetched
        if urlsplit(url).scheme not in ("", "data") or url.startswith("//")
    ]
    assert not outside
    assert sum(len(page.fetched) for page in pages().values()) > 1000


def test_no_style_or_script_of_the_site_fetches_anything_from_outside():
    styles = [*SITE.rglob("*.css")]
    assert styles
    asking = re.compile(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//")
    assert not [path for path in styles if asking.search(path.read_text(encoding="utf-8"))]
    ours = [*SITE.rglob("*.html")]
    loading = re.compile(r"(?:fetch|import|importScripts)\(\s*[\"'](?:https?:)?//")
    assert not [path for path in ours if loading.search(path.read_text(encoding="utf-8"))]


def test_every_link_inside_the_site_leads_somewhere():
    broken = []
    for path, page in pages().items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            reached = target.exists() and (
                not anchor or target not in pages() or anchor in pages()[target].anchors
            )
            if not reached:
                broken.append((str(path.relative_to(SITE)), link))
    assert not broken


def test_every_public_name_has_a_page_in_the_reference(monkeypatch):
    monkeypatch.syspath_prepend(str(PROJECT / "docs"))
    from public_names import public_names

    names = [f"{room}.{name}" for room, own in public_names().items() for name in own]
    assert len(names) > 200
    listed = "\n".join(pages()[SITE / "reference" / "index.html"].links)
    for name in names:
        page = pages()[SITE / "reference" / "names" / f"{name}.html"]
        assert name in page.anchors
        assert f"names/{name}.html" in listed
    del sys.modules["public_names"]


def test_scripts_of_the_gallery_are_there_with_a_picture_and_a_notebook():
    scripts = [path.stem for path in (PROJECT / "examples" / "gallery").glob("plot_*.py")]
    assert len(scripts) >= 14
    for name in scripts:
        assert (SITE / "gallery" / f"{name}.html").exists()
        assert [*(SITE / "_images").glob(f"sphx_glr_{name}_*.png")], name
        assert [*(SITE / "_downloads").rglob(f"{name}.ipynb")], name


@pytest.fixture
def seen(browser):
    """Opens a page of the site, and looks afterwards whether it has complained or asked outside."""
    forget(browser)
    yield lambda page, width=1280, scheme="light": show(browser, SITE / page, width, scheme)
    assert [entry for entry in browser.get_log("browser") if entry["level"] != "INFO"] == []
    asked = files_asked_for(browser)
    assert asked
    assert all(path.startswith(f"{SITE}/") for path in asked)


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("name", MAIN)
def test_a_page_of_the_site_fits_phones_and_screens(seen, name, width):
    page = seen(name, width)
    wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.execute_script(wide) == 0
    shown = "return document.querySelector('h1').getBoundingClientRect().width"
    assert 0 < page.execute_script(shown) <= width


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("missing values", "howto/categories_and_missing_values.html"),
        ("imbalance", "howto/weights_and_imbalance.html"),
        ("conformal", "glossary.html"),
        ("BoostedTreesClassifier", "reference/names/certree.BoostedTreesClassifier.html"),
    ],
)
def test_words_are_found_without_a_network(browser, words, found):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    forget(browser)
    show(browser, f"{(SITE / 'search.html').as_uri()}?q={words.replace(' ', '+')}", 1280)

    def links(page):
        return [
            one.get_attribute("href")
            for one in page.find_elements(By.CSS_SELECTOR, "#search-results li a")
        ]

    WebDriverWait(browser, 20).until(lambda page: any(found in link for link in links(page)))
    assert all(path.startswith(f"{SITE}/") for path in files_asked_for(browser))
    forget(browser)  # lines around what is found are shown where a server gives the pages alone


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", MAIN)
def test_nothing_keeps_people_from_reading_a_page(seen, name, scheme):
    axe = pytest.importorskip("axe_playwright_python", reason="axe is not installed: make browser")
    page = seen(name, 1280, scheme)
    page.execute_script((Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
    told = page.execute_async_script(
        "const done = arguments[arguments.length - 1];"
        "Promise.all(document.getAnimations().map((one) => one.finished))"
        ".then(() => axe.run(document, {preload: false})).then(done)"
    )
    assert len(told["passes"]) > 10
    serious = [
        (found["id"], [node["target"] for node in found["nodes"]][:5])
        for found in told["violations"]
        if found["impact"] in ("serious", "critical")
    ]
    assert not serious
