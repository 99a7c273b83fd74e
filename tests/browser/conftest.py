"""Chromium without a window, what a page has asked for, and whether the site is of today."""

import json
import shutil
from itertools import chain
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

PROJECT = Path(__file__).parents[2]
SITE = PROJECT / "build" / "site"
# What the build itself writes into docs.
WRITTEN = {"gallery", "reference", "__pycache__"}
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")


def newer_than(built):
    """A source of the site that has changed since a file was built, None if there is none."""
    sources = chain((PROJECT / "docs").rglob("*"), (PROJECT / "src" / "certree").rglob("*.py"))
    for source in sorted(sources):
        written = WRITTEN.intersection(source.relative_to(PROJECT).parts)
        if source.is_file() and not written and source.stat().st_mtime > built.stat().st_mtime:
            return source.relative_to(PROJECT)
    return None


def why_no_site(site=SITE):
    """Why there is no site to look at, empty if there is one of today."""
    built = site / "index.html"
    if not built.exists():
        return "the site is not built: make docs"
    changed = newer_than(built)
    return f"the site is older than {changed}: make docs" if changed else ""


WHY_NO_SITE = why_no_site()
needs_site = pytest.mark.skipif(bool(WHY_NO_SITE), reason=WHY_NO_SITE)


@pytest.fixture(scope="session")
def browser():
    webdriver = pytest.importorskip(
        "selenium.webdriver", reason="selenium is not installed: make browser"
    )
    if not CHROMIUM or not DRIVER:
        pytest.skip("chromium and its driver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--force-device-scale-factor=1",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


def show(browser, path, width, scheme="light"):
    """Open a file at a width, on a screen that prefers light or dark colours."""
    media = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(path if isinstance(path, str) else path.as_uri())
    # On a busy machine a loaded page may not be laid out yet, so that nothing on it is displayed.
    browser.execute_async_script(
        "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))"
    )
    return browser


def forget(browser):
    """Leave the page, and drop what it has complained of and asked for."""
    browser.get("about:blank")
    browser.get_log("browser"), browser.get_log("performance")


def files_asked_for(browser):
    """Paths of all files that were asked for since; nothing else may be."""
    asked = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [
        message["params"]["request"]["url"]
        for message in asked
        if message["method"] == "Network.requestWillBeSent"
    ]
    assert {url.split(":")[0] for url in urls} <= {"file", "data"}, urls
    return {unquote(urlsplit(url).path) for url in urls if url.startswith("file:")}
