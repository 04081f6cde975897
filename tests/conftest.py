import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("tinybayes", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("tinybayes")

# A shell without job control lets its background processes ignore Ctrl-C; tests of interrupts need it heard.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The directory of the real data sets; tests that need it are skipped where it is absent."""
    place = os.environ.get("TINYBAYES_DATA", "")
    if not place or not Path(place).is_dir():
        pytest.skip("TINYBAYES_DATA does not point at the directory of the real data sets")
    return Path(place)
