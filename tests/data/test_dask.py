"""Learning on a Dask frame: the same counts as in memory, on a cluster whose workers may die."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from cases import WHOLE
from tinybayes.data import Discretization, read_dataset
from tinybayes.data.dask import connect, open_dask
from tinybayes.errors import TinybayesError
from tinybayes.infer import evaluate
from tinybayes.learn import count_tables, learn_classifier


def frame(rows: int = 700, seed: int = 0) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    y = generator.integers(0, 3, rows)
    size = np.where(generator.random(rows) < 0.1, np.nan, y + generator.normal(size=rows))
    colour = pd.Categorical.from_codes(generator.integers(-1, 3, rows), ["red", "green", "blue", "unseen"])
    text = np.where(generator.random(rows) < 0.7, np.array(["a", "b", "c"])[y], "d").astype(object)
    text[generator.random(rows) < 0.05] = None
    return pd.DataFrame(
        {
            "size": size,
            "colour": colour,
            "text": text,
            "level": generator.integers(-2, 5, rows) + y,
            "flag": generator.random(rows) < 0.2 + 0.2 * y,
            "weight": generator.integers(0, 3, rows).astype(float),
            "y": np.array(["x", "yy", "z"])[y],
        }
    )


def test_weights_are_scaled_as_in_memory() -> None:
    table = frame().assign(weight=frame()["weight"] / 1000)
    whole = read_dataset(table, target="y", weight="weight")
    lazy = open_dask(dd.from_pandas(table, npartitions=5, sort=False), target="y", weight="weight")
    assert lazy.weight_scale == pytest.approx(np.count_nonzero(table["weight"]) / table["weight"].sum())
    assert lazy.variables == whole.variables
    (counted,), (expected,) = (count_tables(data, [(0, 5)]) for data in (lazy, whole))
    np.testing.assert_allclose(counted, expected)
    assert counted.sum() > 100  # rows, not thousandths


@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize(
    "discretization",
    [Discretization(), Discretization(keep_values=8), Discretization(discretizer="quantile", n_bins=5)],
)
def test_a_dask_frame_is_learned_as_the_table_in_memory(discretization: Discretization, weight: str | None) -> None:
    table = frame() if weight else frame().drop(columns="weight")
    whole = read_dataset(table, target="y", weight=weight, discretization=discretization)
    lazy = open_dask(
        dd.from_pandas(table, npartitions=5, sort=False), target="y", weight=weight, discretization=discretization
    )
    assert lazy.variables == whole.variables
    assert lazy.target == whole.target
    families = [(0, 5), (5,), (1, 5), (0, 3, 5), (4, 2), (0, 1, 2, 5)]
    for counted, expected in zip(count_tables(lazy, families), count_tables(whole, families), strict=True):
        np.testing.assert_array_equal(counted, expected)
    for structure in ("naive", "chow-liu"):
        one, other = (learn_classifier(data, structure=structure) for data in (lazy, whole))
        assert [cpd.parents for cpd in one.cpds] == [cpd.parents for cpd in other.cpds]
        for a, b in zip(one.cpds, other.cpds, strict=True):
            np.testing.assert_array_equal(a.table, b.table)
    assert evaluate(one, lazy).error == evaluate(one, whole).error


def test_cut_points_come_from_a_uniform_sample() -> None:
    generator = np.random.default_rng(1)
    table = pd.DataFrame({"x": np.sort(generator.random(20_000)), "y": generator.integers(0, 2, 20_000)})
    discretization = Discretization(discretizer="quantile", n_bins=4, sample_rows=2000)
    data = open_dask(dd.from_pandas(table, npartitions=6, sort=False), target="y", discretization=discretization)
    again = open_dask(dd.from_pandas(table, npartitions=6, sort=False), target="y", discretization=discretization)
    np.testing.assert_allclose(data.variables[0].encoding.points, [0.25, 0.5, 0.75], atol=0.05)
    assert data.variables == again.variables
    assert (
        data.variables[0].encoding.points
        != open_dask(
            dd.from_pandas(table, npartitions=6, sort=False),
            target="y",
            discretization=Discretization(discretizer="quantile", n_bins=4),
        )
        .variables[0]
        .encoding.points
    )  # which looks at all rows


def test_paths_unknown_categories_and_empty_partitions(tmp_path: Path) -> None:
    table = frame().drop(columns="weight")
    for number in range(3):
        table.iloc[number * 200 : (number + 1) * 200].to_parquet(tmp_path / f"{number}.parquet")
    lazy = open_dask(str(tmp_path / "*.parquet"), target="y")
    whole = read_dataset(table.iloc[:600], target="y")
    assert lazy.target == whole.target
    np.testing.assert_array_equal(*(count_tables(data, [(2, 5)])[0] for data in (lazy, whole)))
    source = dd.from_pandas(table, npartitions=4, sort=False)
    unknown = source.assign(colour=source["colour"].cat.as_unknown())
    assert open_dask(unknown[unknown["flag"] & (unknown["y"] == "x") | (unknown.index > 600)], target="y").variables[
        1
    ].states == ("blue", "green", "red")  # as text: what was seen, sorted
    with pytest.raises(TinybayesError, match="at least one row"):
        open_dask(source[source["level"] > 100], target="y")


def test_errors_name_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    source = dd.from_pandas(frame(60), npartitions=2)
    with pytest.raises(TinybayesError, match="a column 'z'"):
        open_dask(source, target="z")
    with pytest.raises(TinybayesError, match=r"a Dask DataFrame.*got DataFrame"):
        open_dask(frame(60), target="y")
    with pytest.raises(TinybayesError, match="finite numbers, got infinity"):
        open_dask(dd.from_pandas(frame(60).assign(size=np.inf), npartitions=2), target="y")
    with pytest.raises(TinybayesError, match="scheduler file"):
        connect("nowhere.json")
    bad = source.map_partitions(lambda part: part.assign(size=1 / 0), meta=source._meta)
    with pytest.raises(TinybayesError, match=r"Dask cluster: expected workers that finish.*ZeroDivisionError"):
        open_dask(bad, target="y")
    monkeypatch.setitem(sys.modules, "dask.dataframe", None)
    with pytest.raises(TinybayesError, match=r"expected Dask.*pip install 'tinybayes\[distributed\]'"):
        open_dask(source, target="y")


def partition(number: int, marker: str) -> pd.DataFrame:
    """Return a partition; once, halfway, the worker that makes it is killed, as by the kernel when memory runs out."""
    if number == 6 and not os.path.exists(marker):
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return frame(300, seed=number).drop(columns="weight")


@WHOLE
@pytest.mark.exhaustive
def test_a_cluster_goes_on_when_a_worker_is_killed(tmp_path: Path) -> None:
    from distributed import Client, LocalCluster

    marker = str(tmp_path / "killed")
    open_marker = str(tmp_path / "open")
    Path(open_marker).touch()
    numbers = list(range(10))
    meta = partition(0, open_marker)
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "20s"}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, local_directory=str(tmp_path)
        ) as cluster,
        Client(cluster) as client,
    ):
        calm = dd.from_map(partition, numbers, marker=open_marker, meta=meta)
        data = open_dask(calm, target="y", client=client)
        deadly = open_dask(
            dd.from_map(partition, numbers, marker=marker, meta=meta), target="y", client=client
        )  # a worker dies while the variables are looked for
        assert Path(marker).exists()
        Path(marker).unlink()
        net = learn_classifier(deadly, structure="chow-liu")  # and another one while pairs are counted
        assert Path(marker).exists()
        assert deadly.variables == data.variables
    whole = read_dataset(pd.concat([partition(n, marker) for n in numbers], ignore_index=True), target="y")
    expected = learn_classifier(whole, structure="chow-liu")
    assert deadly.variables == whole.variables
    for a, b in zip(net.cpds, expected.cpds, strict=True):
        np.testing.assert_array_equal(a.table, b.table)


WITHOUT = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "tinybayes":
            raise ModuleNotFoundError("No module named 'tinybayes'", name="tinybayes")
sys.meta_path.insert(0, Hidden())
"""


def test_workers_without_the_package_are_named(tmp_path: Path) -> None:
    """A scheduler and a worker in a process of their own, in which the package cannot be imported."""
    script = WITHOUT + (
        "import asyncio\nfrom distributed import Scheduler, Worker\n"
        "async def main():\n"
        f"    scheduler = await Scheduler(port=0, dashboard=False, scheduler_file={str(tmp_path / 's.json')!r})\n"
        f"    worker = await Worker(scheduler.address, local_directory={str(tmp_path)!r}, dashboard=False)\n"
        "    print('ready', flush=True)\n    await worker.finished()\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            with pytest.raises(TinybayesError, match=r"a cluster that can import tinybayes, got no module.*; install"):
                connect(tmp_path / "s.json")
        finally:
            process.kill()
