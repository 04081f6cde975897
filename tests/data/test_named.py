"""Named data sets: what scikit-learn brings, what the user may get wrong, a local directory, and the real rows."""

import gzip
import hashlib
from collections import Counter

import numpy as np
import pytest
import sklearn.datasets

import tinybayes
from tinybayes import TinybayesError, learn_classifier, predict_codes
from tinybayes.data import _sources, named
from tinybayes.data.encode import encode_matrix
from tinybayes.errors import FileError

BUNDLED = ("digits", "breast_cancer", "wine", "iris")


def test_datasets_is_the_public_name_of_this_module():
    assert tinybayes.datasets.load is named.load


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_sets_are_split_without_loss(name):
    bunch = getattr(sklearn.datasets, f"load_{name}")()
    split = named.load(name)
    train, test = split
    rows = len(bunch.data)
    assert (len(train), len(test)) == (rows - -(-rows // 3), -(-rows // 3))
    assert split.valid is None
    assert split.name == name
    assert f"load_{name}" in split.source
    assert train.target.states == tuple(bunch.target_names.tolist())
    assert train.variables == test.variables
    # Every row of the source is in exactly one part, and each part holds a third or two of every class.
    codes = encode_matrix(bunch.data, train.variables)
    everything = Counter((*row, label) for row, label in zip(codes.tolist(), bunch.target.tolist(), strict=True))
    rows_of_parts = Counter(
        (*row, label) for part in split for row, label in zip(part.X.tolist(), part.y.tolist(), strict=True)
    )
    assert rows_of_parts == everything
    np.testing.assert_allclose(np.bincount(train.y), np.bincount(bunch.target) * 2 / 3, atol=1)


def test_cut_points_are_found_on_the_training_rows_alone(monkeypatch):
    seen = []
    original = named.learn_encodings

    def spy(columns, discretizer, y, **options):
        seen.append((np.array(columns).T, np.array(y)))
        return original(columns, discretizer, y, **options)

    monkeypatch.setattr(named, "learn_encodings", spy)
    train, _ = named.load("wine")
    [(X, y)] = seen
    np.testing.assert_array_equal(y, train.y)
    np.testing.assert_array_equal(encode_matrix(X, train.variables), train.X)
    codes = tinybayes.data.MDLPDiscretizer(dtype=np.int64).fit_transform(X, y)
    np.testing.assert_array_equal(codes, train.X)


def test_other_cut_points_can_be_asked_for():
    train, _ = named.load("wine", discretizer="uniform", n_bins=5)
    assert {v.cardinality for v in train.variables} == {5}
    plain = named.load("wine").train
    np.testing.assert_array_equal(train.y, plain.y)  # the same split
    lowest, highest = (bound(sklearn.datasets.load_wine().data[:, 0]) for bound in (min, max))
    assert lowest < train.variables[0].encoding.points[0] < train.variables[0].encoding.points[-1] < highest
    widths = np.diff(train.variables[0].encoding.points)
    np.testing.assert_allclose(widths, widths[0])


def test_the_seed_decides_the_split():
    def rows(seed):
        return named.load("digits", seed=seed).train.y

    np.testing.assert_array_equal(rows(3), rows(3))
    assert not np.array_equal(rows(3), rows(4))


def test_digits_are_images():
    split = named.load("digits")
    assert split.image_shape == (8, 8)
    assert split.train.variables[9].name == "pixel_1_1"
    assert split.train.target.states == tuple(range(10))


def test_a_model_of_the_train_part_takes_raw_rows():
    X, y = named.load_raw("iris")
    train, _ = named.load("iris")
    assert list(X.columns) == [v.name for v in train.variables]
    assert X.shape == (150, 4)
    assert sorted(set(y.tolist())) == ["setosa", "versicolor", "virginica"]
    codes = predict_codes(learn_classifier(train), encode_matrix(X.to_numpy(), train.variables))
    assert np.mean(np.array(train.target.states)[codes] == y) > 0.9


# What the user may get wrong


def test_names_and_folds():
    assert set(named.names()) >= {*BUNDLED, "letter", "satimage", "usps", "mnist", "nltcs", "tmovie"}
    assert {name: named.n_folds(name) for name in named.names() if named.n_folds(name) > 1} == {"satimage": 5}


@pytest.mark.parametrize("call", [named.load, named.load_raw, named.n_folds])
def test_an_unknown_name_lists_the_known_ones_and_suggests_the_closest(call):
    with pytest.raises(TinybayesError, match=r"digits.*tmovie.*, got 'leter'; did you mean 'letter'"):
        call("leter")
    with pytest.raises(TinybayesError, match=r"got 'zzzz'$"):
        call("zzzz")
    with pytest.raises(TinybayesError, match=r"got 3$"):
        call(3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fold": 1}, "fold of iris: expected an integer from 0 to 0, got 1"),
        ({"fold": -1}, "got -1"),
        ({"fold": "first"}, "got 'first'"),
        ({"seed": -1}, "seed: expected an integer"),
        ({"seed": 0.5}, "got 0.5"),
    ],
)
def test_impossible_folds_and_seeds(options, message):
    with pytest.raises(TinybayesError, match=message):
        named.load("iris", **options)


def test_density_sets_have_no_raw_numbers():
    with pytest.raises(TinybayesError, match="'kdd'; use load"):
        named.load_raw("kdd")


def test_a_data_directory_that_is_none(monkeypatch, tmp_path):
    monkeypatch.setenv("TINYBAYES_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(TinybayesError, match="TINYBAYES_DATA: expected a directory"):
        named.load("nltcs")


# A local directory


@pytest.fixture
def local(monkeypatch, tmp_path):
    (tmp_path / "classification" / "raw").mkdir(parents=True)
    (tmp_path / "density").mkdir()
    monkeypatch.setenv("TINYBAYES_DATA", str(tmp_path))
    return tmp_path


def test_local_density_files(local, monkeypatch):
    rows = {}
    for seed, part in enumerate(("train", "valid", "test")):
        rows[part] = np.random.default_rng(seed).integers(0, 2, (20, 5))
        content = "".join(",".join(map(str, row)) + "\n" for row in rows[part].tolist()).encode()
        monkeypatch.setitem(_sources.SHA256, f"nltcs.{part}.data", hashlib.sha256(content).hexdigest())
        (local / "density" / f"nltcs.{part}.data.gz").write_bytes(gzip.compress(content))
    split = named.load("nltcs")
    for part, loaded in (("train", split.train), ("valid", split.valid), ("test", split.test)):
        np.testing.assert_array_equal(loaded.X, rows[part])
    assert str(local) in split.source
    path = local / "density" / "nltcs.train.data.gz"
    path.write_bytes(gzip.compress(content))
    with pytest.raises(
        FileError, match=r"train\.data\.gz: expected content with the SHA-256 sum .*unset TINYBAYES_DATA"
    ):
        named.load("nltcs")
    path.write_bytes(b"\x1f\x8b but no more")
    with pytest.raises(FileError, match=r"train\.data\.gz: expected a readable file.*unset TINYBAYES_DATA"):
        named.load("nltcs")


def test_density_sets_without_a_checksum_say_which_file_they_need_where(local, monkeypatch):
    for where in (str(local), ""):
        monkeypatch.setenv("TINYBAYES_DATA", where)
        words = r"data set dna: expected the file density/dna\.train\.data\.gz in .* got none; download https"
        with pytest.raises(FileError, match=words):
            named.load("dna")
    monkeypatch.setenv("TINYBAYES_DATA", str(local))
    monkeypatch.setitem(_sources.UNSEEN, "dna", (5, {"train": 20, "valid": 7, "test": 9}))
    rows = {}
    for seed, (part, count) in enumerate(_sources.UNSEEN["dna"][1].items()):
        rows[part] = np.random.default_rng(seed).integers(0, 2, (count, 5))
        content = "".join(",".join(map(str, row)) + "\n" for row in rows[part].tolist()).encode()
        (local / "density" / f"dna.{part}.data.gz").write_bytes(gzip.compress(content))
    split = named.load("dna")
    np.testing.assert_array_equal(split.train.X, rows["train"])
    np.testing.assert_array_equal(split.test.X, rows["test"])
    path = local / "density" / "dna.test.data.gz"
    path.write_bytes(gzip.compress(content.replace(b"\n", b"\r\n").rstrip()))  # of a file that was edited elsewhere
    np.testing.assert_array_equal(named.load("dna").test.X, rows["test"])
    for wrong in (
        content[:-10],
        content.replace(b"1", b"2"),
        content.replace(b",", b";"),
        content.replace(b",", b";", 1),
        b"",
    ):
        path.write_bytes(gzip.compress(wrong))
        with pytest.raises(FileError, match=r"dna\.test\.data\.gz: expected 9 rows of 5 zeros and ones"):
            named.load("dna")


def test_all_twenty_density_sets_are_known():
    sets = [name for name in named.names() if f"{name}.train.data" in _sources.SHA256 or name in _sources.UNSEEN]
    assert len(sets) == 20
    assert len(_sources.UNSEEN) == 6


def reference(folds=1):
    generator = np.random.default_rng(1)
    arrays = {"n_folds": np.array(folds)}
    for fold in range(1, folds + 1):
        for part, rows in (("tr", 60), ("te", 30)):
            arrays[f"x_{part}_fold{fold}"] = generator.integers(1, 4 + fold, (rows, 36)).astype(np.uint8)
            arrays[f"t_{part}_fold{fold}"] = generator.integers(0, 6, rows).astype(np.uint8)
    arrays["x_te_fold2"][0, 0] = 9  # a state that only the test part holds
    return arrays


def test_a_reference_discretisation_is_taken_as_it_is(local):
    arrays = reference(5)
    np.savez(local / "classification" / "satimage.npz", **arrays)
    split = named.load("satimage", fold=1)
    np.testing.assert_array_equal(split.train.X + 1, arrays["x_tr_fold2"])
    np.testing.assert_array_equal(split.test.y, arrays["t_te_fold2"])
    assert split.train.variables[0].states == tuple(range(1, 10))
    assert not split.train.variables[0].has_intervals
    assert split.train.target.states[5] == "very damp grey soil"
    assert "fold 2 of 5: the reference discretisation" in split.source


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x_tr_fold1": None}, "readable file, got .*x_tr_fold1.*restore"),
        ({"x_tr_fold1": np.zeros((60, 36), np.uint8)}, "36 columns of numbers from 1"),
        ({"x_te_fold1": np.ones((30, 35), np.uint8)}, "36 columns"),
        ({"t_te_fold1": np.full(30, 6, np.uint8)}, "labels below 6"),
        ({"t_te_fold1": np.zeros(29, np.uint8)}, "shapes"),
        ({"x_tr_fold1": np.ones((60, 36))}, "array x_tr_fold1: expected uint8 numbers with 2 axes, got float64"),
        ({"t_tr_fold1": np.array([{}] * 60)}, "readable file, got Object arrays cannot be loaded"),
    ],
)
def test_damaged_reference_files(change, message, local):
    arrays = {key: value for key, value in (reference(5) | change).items() if value is not None}
    np.savez(local / "classification" / "satimage.npz", **arrays)
    with pytest.raises(FileError, match=message):
        named.load("satimage")


def test_local_raw_tables_are_checked(local):
    path = local / "classification" / "raw" / "letter.npz"
    X = np.random.default_rng(0).integers(0, 16, (60, 16)).astype(np.uint8)
    y = np.tile(np.arange(20), 3).astype(np.uint8)
    np.savez(path, x=X, y=y)
    with pytest.raises(FileError, match=rf"letter\.npz: expected content with.*{_sources.CONTENT['letter']}, got"):
        named.load("letter")
    for wrong in ({"x": X, "y": y[1:]}, {"x": X, "y": y.astype(np.int64)}, {"x": X[0], "y": y}, {"x": X}):
        np.savez(path, **wrong)
        with pytest.raises(FileError, match=r"letter\.npz: expected"):
            named.load("letter")
    path.write_bytes(b"PK\x03\x04 and nothing else")
    with pytest.raises(FileError, match="a readable file"):
        named.load("letter")


# The real rows

SHAPES = {
    "nltcs": (16, 16181, 2157, 3236),
    "msnbc": (17, 291326, 38843, 58265),
    "kdd": (64, 180092, 19907, 34955),
    "plants": (69, 17412, 2321, 3482),
    "baudio": (100, 15000, 2000, 3000),
    "jester": (100, 9000, 1000, 4116),
    "tretail": (135, 22041, 2938, 4408),
    "pumsb_star": (163, 12262, 1635, 2452),
    "kosarek": (190, 33375, 4450, 6675),
    "msweb": (294, 29441, 3270, 5000),
    "book": (500, 8700, 1159, 1739),
    "tmovie": (500, 4524, 1002, 591),
    "cwebkb": (839, 2803, 558, 838),
    "bbc": (1058, 1670, 225, 330),
}


@pytest.mark.parametrize("name", SHAPES)
def test_real_density_sets(name, data_dir):
    split = named.load(name)
    parts = (split.train, split.valid, split.test)
    assert (len(split.train.variables), *map(len, parts)) == SHAPES[name]
    with gzip.open(data_dir / "density" / f"{name}.test.data.gz", "rt") as stream:
        np.testing.assert_array_equal(split.test.X[:50], [list(map(int, next(stream).split(","))) for _ in range(50)])


# Rows, columns and classes; entries of a naive Bayes model, prior included, as the papers count them.
REFERENCE = {
    "letter": [(13342, 6658, 16, 26, 3822)],
    "satimage": [
        (5151, 1284, 36, 6, 2508),
        (5153, 1282, 36, 6, 2448),
        (5156, 1279, 36, 6, 2508),
        (5153, 1282, 36, 6, 2472),
        (5151, 1284, 36, 6, 2514),
    ],
    "usps": [(7340, 3660, 256, 10, 8650)],
}


@pytest.mark.parametrize("name", REFERENCE)
def test_real_reference_folds(name, data_dir):
    shapes = []
    for fold in range(named.n_folds(name)):
        train, test = named.load(name, fold=fold)
        classes = train.target.cardinality
        entries = classes * (1 + sum(v.cardinality for v in train.variables))
        shapes.append((len(train), len(test), len(train.variables), classes, entries))
        assert set(train.y.tolist()) == set(range(classes))
    assert shapes == REFERENCE[name]


def test_real_reference_classes_are_those_of_the_raw_rows(data_dir):
    index = np.load(data_dir / "classification" / "raw" / "split_indices.npz")
    for name, key in (("letter", "letter_tr"), ("satimage", "satimage_tr1"), ("usps", "usps_tr")):
        train, _ = named.load(name)
        _, classes = named.load_raw(name)
        np.testing.assert_array_equal(np.array(train.target.states)[train.y], classes[index[key]])


@pytest.mark.exhaustive
def test_real_letter_and_mnist_by_our_own_discretisation(data_dir, monkeypatch, tmp_path):
    (tmp_path / "classification").mkdir()
    (tmp_path / "classification" / "raw").symlink_to(data_dir / "classification" / "raw")
    monkeypatch.setenv("TINYBAYES_DATA", str(tmp_path))
    bounds = {"letter": (13333, 6667, 0.24, 0.28), "mnist": (46666, 23334, 0.15, 0.18)}
    for name, (train_rows, test_rows, low, high) in bounds.items():
        train, test = named.load(name)
        assert (len(train), len(test)) == (train_rows, test_rows)
        wrong = np.mean(predict_codes(learn_classifier(train, structure="naive"), test.X) != test.y)
        assert low < wrong < high
