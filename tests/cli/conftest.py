import pytest

from cli_host import run


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
