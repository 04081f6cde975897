import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("tinybayes", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("tinybayes")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The directory of the real data sets; tests that need it are skipped where it is absent."""
    place = os.environ.get("TINYBAYES_DATA", "")
    if not place or not Path(place).is_dir():
        pytest.skip("TINYBAYES_DATA does not point at the directory of the real data sets")
    return Path(place)
