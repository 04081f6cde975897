import ctypes
import gc
import os
import shutil
import signal
import sys
import zlib
from pathlib import Path

import pytest
from hypothesis import settings

# JAX keeps what it compiles on disk, below build/: the same program is compiled once for all tests, processes and runs.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / "build" / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
MEMORY = 1000  # MB of a process, above which compiled programs are forgotten
LIMIT = pytest.StashKey[int]()

settings.register_profile("tinybayes", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("tinybayes")

# A shell without job control lets its background processes ignore Ctrl-C; tests of interrupts need it heard.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--share", help="K/N: only the K-th of N parts of the files of tests, from 1 to N")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the files of other shares; which share a file belongs to depends on its name alone."""
    if (share := config.getoption("--share")) is None:
        return
    part, _, parts = share.partition("/")
    if not (part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise pytest.UsageError(f"--share: expected K/N with K from 1 to N, got {share}")
    mine, others = [], []
    for item in items:
        belongs = zlib.crc32(item.location[0].encode()) % int(parts) == int(part) - 1
        (mine if belongs else others).append(item)
    config.hook.pytest_deselected(items=others)
    items[:] = mine


def memory() -> int:
    """Return the megabytes of this process, 0 where the system does not say."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20 if statm.exists() else 0


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Forget what JAX has compiled when memory runs high.

    JAX keeps every program that it compiled, more than 1 MB each, and the suite compiles thousands. Those needed again
    come back from the disk. The C library would keep the memory that becomes free, unless told to give it back.
    """
    if "jax" in sys.modules and memory() > item.config.stash.get(LIMIT, MEMORY):
        sys.modules["jax"].clear_caches()
        gc.collect()
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of the GNU C library
        if trim:
            trim(0)
        item.config.stash[LIMIT] = max(MEMORY, memory() + 300)  # the rest is not JAX's: do not clear after every test


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The directory of the real data sets; tests that need it are skipped where it is absent."""
    place = os.environ.get("TINYBAYES_DATA", "")
    if not place or not Path(place).is_dir():
        pytest.skip("TINYBAYES_DATA does not point at the directory of the real data sets")
    return Path(place)


@pytest.fixture(scope="session")
def driver():
    """Debian's Chromium, driven through Selenium."""
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
    """A page in the browser; screenshots go to the directory in TINYBAYES_SCREENSHOTS, for people to look at."""
    from browser_page import Page

    folder = Path(os.environ.get("TINYBAYES_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    page = Page(driver, folder)
    yield page
    assert page.complaints() == []
