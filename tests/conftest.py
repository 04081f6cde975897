import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

from cli_host import run

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


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory with tables of irises and a model of them."""
    from sklearn.datasets import load_iris

    folder = tmp_path_factory.mktemp("cli")
    frame = load_iris(as_frame=True).frame.rename(columns={"target": "species"})
    frame["species"] = frame["species"].map({0: "setosa", 1: "versicolor", 2: "virginica"})
    frame.iloc[::2].to_csv(folder / "train.csv", index=False)
    frame.iloc[1::2].to_csv(folder / "test.csv", index=False)
    frame.iloc[1::2].drop(columns="species").to_parquet(folder / "new.parquet")
    run("fit", "train.csv", "--target", "species", "--structure", "naive", "-o", "iris.tb", cwd=folder)
    return folder
