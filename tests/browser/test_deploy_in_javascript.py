"""The programs of the page "Deploy" that run in Node.js and in Chromium."""

import shutil
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from deploy_programs import check_lines, write_model

# Where `make browser` installs npm's packages.
PACKAGES = Path(sys.prefix) / "node" / "node_modules"


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def deployed(tmp_path_factory):
    """A folder with the programs, the model's files and npm's packages; and the model."""
    if not (PACKAGES / "onnxruntime-web").exists():
        pytest.skip("onnxruntime-web is not installed: make browser")
    folder = tmp_path_factory.mktemp("deployed")
    model = write_model(folder)
    (folder / "node_modules").symlink_to(PACKAGES)
    return folder, model


def test_the_program_in_node_predicts_as_the_model(deployed):
    folder, model = deployed
    if shutil.which("node") is None or not (PACKAGES / "onnxruntime-node").exists():
        pytest.skip("Node.js and onnxruntime-node are not installed: make browser")
    command = ["node", "node.mjs"]
    done = subprocess.run(
        command, cwd=folder, check=True, capture_output=True, text=True, timeout=120
    )
    check_lines(done.stdout, model, rtol=1e-10)


def test_the_page_in_a_browser_predicts_as_the_model(deployed, browser):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.wait import WebDriverWait

    folder, model = deployed
    handler = partial(QuietHandler, directory=folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            browser.get(f"http://127.0.0.1:{server.server_port}/browser.html")
            WebDriverWait(browser, 60).until(
                lambda page: page.find_element(By.TAG_NAME, "pre").text
            )
            check_lines(browser.find_element(By.TAG_NAME, "pre").text, model, rtol=1e-10)
        finally:
            server.shutdown()
