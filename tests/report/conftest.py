"""A browser for the tests of pages: Debian's Chromium, driven through Selenium.

Screenshots go to the directory in TINYBAYES_SCREENSHOTS, so that people can look at them; else to a temporary one.
"""

import os
import shutil
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def driver():
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and chromedriver):
        pytest.skip("no chromium and chromedriver on this machine")
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "hide-scrollbars"):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(chromedriver))
    yield browser
    browser.quit()


@pytest.fixture
def browser(driver, tmp_path):
    from browser_page import Page

    folder = Path(os.environ.get("TINYBAYES_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    found = Page(driver, folder)
    yield found
    assert found.complaints() == []
