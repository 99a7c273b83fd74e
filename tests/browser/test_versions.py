"""The sites of several versions beside one another, as `make versions` puts them."""

import importlib.util
import json
import os
import re

import pytest

from browser.conftest import PROJECT, SITE, files_asked_for, forget, needs_site, show, why_no_site


@pytest.fixture(scope="module")
def versions():
    file = PROJECT / "docs" / "versions.py"
    spec = importlib.util.spec_from_file_location("versions", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def small_site(place, version):
    """As much of a site as tells its version."""
    options = f"const DOCUMENTATION_OPTIONS = {{ VERSION: '{version}' }};"
    (place / "_static").mkdir(parents=True)
    (place / "_static" / "documentation_options.js").write_text(options)
    (place / "_static" / "versions.js").write_text("const CERTREE_VERSIONS = [];")
    (place / "index.html").write_text(f"certree {version}")
    return place


def listed(folder):
    text = (folder / "_static" / "versions.js").read_text()
    return json.loads(text.removeprefix("const CERTREE_VERSIONS = ").removesuffix(";\n"))


def test_versions_know_of_one_another_the_newest_first(versions, tmp_path):
    place = tmp_path / "all"
    (place / "images").mkdir(parents=True)  # no version
    told = ["0.9.0", "0.10.0", "0.11.0.dev0"]
    for version in told:
        versions.put(small_site(tmp_path / version, version), place)
    for version in told:
        assert listed(place / version) == ["0.11.0.dev0", "0.10.0", "0.9.0"]
        assert (place / version / "index.html").read_text() == f"certree {version}"
    assert 'url=0.10.0/index.html"' in (place / "index.html").read_text()


def test_a_version_takes_the_place_of_what_was_there(versions, tmp_path):
    place = tmp_path / "all"
    site = small_site(tmp_path / "site", "1.0")
    (site / "old.html").write_text("")
    versions.put(site, place)
    (site / "old.html").unlink()
    assert versions.put(site, place) == ["1.0"]
    assert not (place / "1.0" / "old.html").exists()


def test_what_is_no_site_is_refused(versions, tmp_path):
    site = small_site(tmp_path / "site", "1.0")
    (site / "_static" / "documentation_options.js").write_text("nothing")
    with pytest.raises(SystemExit, match="it says no version"):
        versions.put(site, tmp_path / "all")
    assert not (tmp_path / "all").exists()


def test_a_site_that_is_older_than_its_sources_is_not_looked_at(tmp_path):
    assert why_no_site(tmp_path) == "the site is not built: make docs"
    built = small_site(tmp_path / "site", "1.0") / "index.html"
    assert why_no_site(built.parent) == ""
    os.utime(built, (0, 0))
    assert re.fullmatch(r"the site is older than docs/.+: make docs", why_no_site(built.parent))


@needs_site
def test_a_list_leads_from_version_to_version(versions, browser, tmp_path):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import Select

    now = versions.version_of(SITE)
    place = tmp_path / "all"
    versions.put(SITE, place)
    forget(browser)
    page = show(browser, place / now / "howto" / "certify.html", 1280)
    shown = "select.certree-versions"
    assert not any(one.is_displayed() for one in page.find_elements(By.CSS_SELECTOR, shown))
    versions.put(small_site(tmp_path / "old", "0.0.1"), place)
    page = show(browser, place / now / "howto" / "certify.html", 1280)
    lists = [one for one in page.find_elements(By.CSS_SELECTOR, shown) if one.is_displayed()]
    choice = Select(lists[0])
    assert choice.first_selected_option.text == now
    assert [one.text for one in choice.options] == [now, "0.0.1"]
    choice.select_by_visible_text("0.0.1")
    assert page.find_element(By.TAG_NAME, "body").text == "certree 0.0.1"
    assert [entry for entry in browser.get_log("browser") if entry["level"] != "INFO"] == []
    assert all(path.startswith(f"{place}/") for path in files_asked_for(browser))
