"""Where named data sets come from. A server on this machine stands for the public places; none is contacted."""

import hashlib
import io
import threading
import time
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import URLError

import numpy as np
import pytest
import sklearn.datasets
from scipy.io import savemat
from sklearn.utils import Bunch

import tinybayes
from tinybayes import TinybayesError
from tinybayes.data import _sources, named
from tinybayes.errors import FileError

PARTS = ("train", "valid", "test")


@pytest.fixture
def offline(monkeypatch, tmp_path):
    """No local data, an empty cache, and no way out; yields the cache."""
    monkeypatch.delenv("TINYBAYES_DATA", raising=False)
    monkeypatch.setenv("TINYBAYES_CACHE", str(tmp_path / "deep" / "cache"))
    monkeypatch.setenv("no_proxy", "*")
    for base in ("UCI", "ROWEIS", "DENSITY"):
        monkeypatch.setattr(_sources, base, "https://127.0.0.1:1")

    def refuse(**_):
        raise URLError("no route")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", refuse)
    return tmp_path / "deep" / "cache"


@pytest.fixture
def server(offline, monkeypatch):
    """A server in place of the public ones: `files` are served by base name, `answer` may replace the answer."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            shared.requests.append(self.path)
            shared.answer(self, shared.files.get(self.path.rpartition("/")[2]))

        def log_message(self, *_):
            pass

    shared = Bunch(files={}, requests=[], answer=give)
    service = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    service.daemon_threads = True
    thread = threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    for base in ("UCI", "ROWEIS", "DENSITY"):
        monkeypatch.setattr(_sources, base, f"http://127.0.0.1:{service.server_port}")
    monkeypatch.setattr(_sources, "SCHEMES", ("http",))
    yield shared
    service.shutdown()
    service.server_close()
    thread.join()


def give(handler, content, length=None):
    if content is None:
        return handler.send_error(404)
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(content) if length is None else length))
    handler.end_headers()
    return handler.wfile.write(content)


@pytest.fixture
def tiny(server, monkeypatch):
    """A density set of three small files on the server."""
    rows = {part: np.random.default_rng(i).integers(0, 2, (20 - i, 5)) for i, part in enumerate(PARTS)}
    for part, values in rows.items():
        content = "".join(",".join(map(str, row)) + "\n" for row in values.tolist()).encode()
        server.files[f"nltcs.{part}.data"] = content
        monkeypatch.setitem(_sources.SHA256, f"nltcs.{part}.data", hashlib.sha256(content).hexdigest())
    return rows


def cached(cache):
    """All files in the cache, hidden ones too."""
    return sorted(str(path.relative_to(cache)) for path in cache.rglob("*")) if cache.exists() else []


# Downloads


def test_a_density_set_is_downloaded_once(tiny, server, offline):
    for _ in range(2):
        split = named.load("nltcs")
        np.testing.assert_array_equal(split.train.X, tiny["train"])
        np.testing.assert_array_equal(split.valid.X, tiny["valid"])
        np.testing.assert_array_equal(split.test.X, tiny["test"])
    assert split.train.target is None
    assert split.train.variables[4] == tinybayes.Variable("x4", (0, 1))
    assert server.requests == [f"/nltcs/nltcs.{part}.data" for part in PARTS]
    assert cached(offline) == sorted(f"nltcs.{part}.data" for part in PARTS)
    assert "/nltcs/nltcs.train.data" in split.source


def test_progress_is_shown_only_when_asked_for(tiny, server, offline, capfd):
    named.load("nltcs")
    assert capfd.readouterr() == ("", "")
    (offline / "nltcs.train.data").unlink()
    np.testing.assert_array_equal(named.load("nltcs", progress=True).train.X, tiny["train"])
    shown = capfd.readouterr()
    assert shown.out == ""
    assert "nltcs.train.data" in shown.err


def test_wrong_content_is_refused_and_not_kept(tiny, server, offline):
    right = server.files["nltcs.train.data"]
    wrong = server.files["nltcs.train.data"] = right[:-2] + bytes([right[-2] ^ 1]) + b"\n"
    with pytest.raises(FileError) as caught:
        named.load("nltcs")
    for part in ("nltcs.train.data", hashlib.sha256(right).hexdigest(), hashlib.sha256(wrong).hexdigest(), "try again"):
        assert part in str(caught.value)
    assert cached(offline) == []


def test_a_damaged_file_in_the_cache_is_named_with_both_sums(tiny, server, offline):
    named.load("nltcs")
    path = offline / "nltcs.valid.data"
    right = path.read_bytes()
    path.write_bytes(right[:-4])
    with pytest.raises(FileError) as caught:
        named.load("nltcs")
    for part in (str(path), hashlib.sha256(right).hexdigest(), hashlib.sha256(right[:-4]).hexdigest(), "delete"):
        assert part in str(caught.value)
    path.unlink()
    assert len(named.load("nltcs").valid) == 19


@pytest.mark.parametrize("header", [b"{'descr': '<i8', 'shape': (3,\n", b"{'descr': '<i8'\n", b"\xff\n"])
def test_a_damaged_header_of_an_array_names_the_file(header, tmp_path):
    path = tmp_path / "folds.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x_tr_fold1.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with pytest.raises(FileError, match=r"folds\.npz"):
        _sources.reference_fold(path, 0)


def hang_up(handler, content):
    handler.close_connection = True
    handler.connection.close()


def stall(handler, content):
    give(handler, content[:4], len(content))
    handler.wfile.flush()
    time.sleep(1)


def redirect(handler, content):
    handler.send_response(302)
    handler.send_header("Location", "ftp://127.0.0.1/nltcs.train.data")
    handler.send_header("Content-Length", "0")
    handler.end_headers()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda handler, content: give(handler, content[:-4], len(content)), r"200 bytes|IncompleteRead"),
        (lambda handler, content: give(handler, None), "to download it, got HTTP Error 404"),
        (lambda handler, content: give(handler, content, "many"), "to download it"),
        (lambda handler, content: give(handler, b"1" * 5000), "at most 4,000 bytes"),
        (hang_up, "to download it"),
        (stall, "timed out"),
        (redirect, "an address that begins with http://, got ftp://"),
    ],
    ids=["truncated", "absent", "senseless", "endless", "hang-up", "stalled", "redirected"],
)
def test_failed_downloads_leave_nothing_behind(answer, message, tiny, server, offline, monkeypatch):
    monkeypatch.setattr(_sources, "TIMEOUT", 0.3)
    monkeypatch.setattr(_sources, "LIMIT", 4000)
    server.answer = answer
    with pytest.raises(FileError, match=message):
        named.load("nltcs")
    assert cached(offline) == []


def test_a_file_may_be_as_large_as_the_limit(tiny, server, offline, monkeypatch):
    monkeypatch.setattr(_sources, "LIMIT", len(server.files["nltcs.train.data"]))  # the others are smaller
    np.testing.assert_array_equal(named.load("nltcs").train.X, tiny["train"])


def test_an_interrupt_leaves_nothing_behind(tiny, server, offline, monkeypatch):
    def interrupted(stream):
        yield stream.read(10)
        raise KeyboardInterrupt

    monkeypatch.setattr(_sources, "_blocks", interrupted)
    with pytest.raises(KeyboardInterrupt):
        named.load("nltcs")
    assert cached(offline) == []


@pytest.mark.parametrize("name", ["nltcs", "letter", "satimage", "usps", "mnist"])
def test_offline_the_message_says_what_to_do(name, offline):
    with pytest.raises(FileError, match=r"to download it, got .*; go online, .*TINYBAYES_DATA") as caught:
        named.load(name)
    assert name == "mnist" or f"by hand to {offline}" in str(caught.value)
    assert cached(offline) == []


def test_only_https_is_used(server, tiny, monkeypatch):
    monkeypatch.setattr(_sources, "SCHEMES", ("https",))
    with pytest.raises(FileError, match="begins with https://, got http://"):
        named.load("nltcs")
    assert server.requests == []


def test_the_public_addresses_are_secure():
    assert all(base.startswith("https://") for base in (_sources.UCI, _sources.ROWEIS, _sources.DENSITY))
    assert _sources.SCHEMES == ("https",)


def test_a_cache_that_cannot_be_made(tiny, server, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TINYBAYES_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(FileError, match=r"expected a directory for the cache.*set TINYBAYES_CACHE"):
        named.load("nltcs")


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_the_usual_place_of_the_cache(platform, monkeypatch, tmp_path):
    for name in ("TINYBAYES_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(_sources.sys, "platform", platform)
    monkeypatch.setattr(_sources.Path, "home", lambda: tmp_path)
    usual = {"linux": ".cache", "darwin": "Library/Caches", "win32": "AppData/Local"}[platform]
    assert _sources.cache_dir() == tmp_path / usual / "tinybayes"
    monkeypatch.setenv({"linux": "XDG_CACHE_HOME", "win32": "LOCALAPPDATA"}.get(platform, "HOME"), str(tmp_path))
    assert _sources.cache_dir() == (tmp_path / usual if platform == "darwin" else tmp_path) / "tinybayes"
    monkeypatch.setenv("TINYBAYES_CACHE", str(tmp_path / "mine"))
    assert _sources.cache_dir() == tmp_path / "mine"


# Tables of raw integers, in the formats of their public files


@pytest.fixture
def letters(server, monkeypatch):
    generator = np.random.default_rng(0)
    y = np.repeat(np.arange(26), 6)
    X = generator.integers(0, 16, (len(y), 16))
    X[:, 3] = y % 13
    content = "".join(
        f"{chr(65 + c)},{','.join(map(str, r))}\n" for r, c in zip(X.tolist(), y.tolist(), strict=True)
    ).encode()
    server.files["letter-recognition.data"] = content
    monkeypatch.setitem(_sources.SHA256, "letter-recognition.data", hashlib.sha256(content).hexdigest())
    return X, y


def test_letter_from_its_public_file(letters):
    X, y = named.load_raw("letter")
    np.testing.assert_array_equal(X.to_numpy(), letters[0])
    assert "".join(y) == "".join(chr(65 + c) for c in letters[1])
    assert X.columns[0] == "x-box"
    train, test = named.load("letter")
    assert (len(train), len(test)) == (104, 52)
    assert train.target.states == tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")


def test_other_letters_are_refused(letters, server, offline):
    server.files["letter-recognition.data"] = server.files["letter-recognition.data"].replace(b"A,", b"B,")
    with pytest.raises(FileError, match="expected content with the SHA-256 sum"):
        named.load_raw("letter")
    assert cached(offline) == []


def test_satimage_from_its_public_files_has_five_folds(server, monkeypatch):
    generator = np.random.default_rng(0)
    labels = np.array([1, 2, 3, 4, 5, 7])
    codes = np.tile(np.arange(6), 25)
    X = generator.integers(0, 4, (150, 36)) + 27 + 10 * codes[:, None]
    rows = np.column_stack([X, labels[codes]])
    for file, part in (("sat.trn", rows[:100]), ("sat.tst", rows[100:])):
        content = "".join(" ".join(map(str, row)) + "\n" for row in part.tolist()).encode()
        server.files[file] = content
        monkeypatch.setitem(_sources.SHA256, file, hashlib.sha256(content).hexdigest())
    splits = [named.load("satimage", fold=fold) for fold in range(5)]
    assert [(len(s.train), len(s.test)) for s in splits] == [(120, 30)] * 5
    assert [s.source.partition(";")[2][:28] for s in splits] == [f" stratified fold {f} of 5, see" for f in range(1, 6)]
    assert sum(np.bincount(s.test.y) for s in splits).tolist() == [25] * 6
    raw, classes = named.load_raw("satimage")
    np.testing.assert_array_equal(raw.to_numpy(), X)
    assert classes[5] == "very damp grey soil"
    with pytest.raises(TinybayesError, match="fold of satimage"):
        named.load("satimage", fold=5)


@pytest.fixture
def usps(server, monkeypatch):
    """Images of one pixel that is brighter by the digit; a MATLAB file as published: pixels, images, digits."""
    data = np.random.default_rng(0).integers(0, 5, (256, 12, 10)).astype(np.uint8)
    data[17] += 20 * np.arange(10, dtype=np.uint8)
    stream = io.BytesIO()
    savemat(stream, {"data": data})
    server.files["usps_all.mat"] = stream.getvalue()
    X = np.array([data[:, i, d] for d in range(10) for i in range(12)])
    y = np.array([(d + 1) % 10 for d in range(10) for _ in range(12)])
    monkeypatch.setitem(_sources.CONTENT, "usps", _sources.content_sum(X, y))
    return X, y


def test_usps_from_its_matlab_file(usps, server, offline):
    X, y = named.load_raw("usps")
    np.testing.assert_array_equal(X.to_numpy(), usps[0])
    np.testing.assert_array_equal(y, usps[1])
    split = named.load("usps")
    assert split.train.target.states == (1, 2, 3, 4, 5, 6, 7, 8, 9, 0)
    assert split.image_shape == (16, 16)
    # Column by column: the 18th number is the second of the second column.
    assert split.train.variables[17].name == "pixel_1_1"
    assert split.train.variables[16].name == "pixel_0_1"
    assert split.train.variables[17].cardinality > 1
    assert cached(offline) == ["usps_all.mat"]


@pytest.mark.parametrize("damage", [lambda c: b"", lambda c: c[:-9], lambda c: b"<html>" * 99, lambda c: c[:200] * 2])
def test_a_damaged_matlab_file(damage, usps, server, offline):
    server.files["usps_all.mat"] = damage(server.files["usps_all.mat"])
    with pytest.raises(FileError, match=r"usps_all\.mat: expected a MATLAB file.*right file at"):
        named.load("usps")
    assert cached(offline) == []


def test_another_matlab_file(usps, server, offline):
    stream = io.BytesIO()
    savemat(stream, {"data": np.zeros((256, 2, 10), np.uint8)})
    server.files["usps_all.mat"] = stream.getvalue()
    with pytest.raises(FileError, match=_sources.CONTENT["usps"]):
        named.load("usps")
    assert cached(offline) == []


@pytest.fixture
def mnist(offline, monkeypatch):
    """OpenML's answer, with 200 images; counts how often it is asked."""
    small = sklearn.datasets.load_digits()
    X = np.zeros((200, 28, 28))
    X[:, 6:22, 6:22] = np.kron(small.images[:200], np.ones((2, 2)))
    X[:, 7, 7] += 3
    X[:, 0, 0] = X[:, 27, 11] = 5  # at the border, which is repeated
    y = small.target[:200]
    asked = []

    def fetch(**options):
        asked.append(options)
        return Bunch(data=X.reshape(200, -1), target=y.astype(str).astype(object))

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    monkeypatch.setitem(_sources.CONTENT, "mnist", _sources.content_sum(X.reshape(200, -1), y))
    return Bunch(X=X, y=y, asked=asked)


def test_mnist_from_openml_is_scaled_and_cached(mnist, offline):
    X, y = named.load_raw("mnist")
    np.testing.assert_array_equal(y, mnist.y)
    assert X.shape == (200, 196)
    weights = np.outer([1, 3, 3, 1], [1, 3, 3, 1]) / 64  # the linear kernel, twice as wide, over 4x4 pixels
    padded = np.pad(mnist.X, ((0, 0), (1, 1), (1, 1)), mode="edge")
    for row, column in ((0, 0), (3, 3), (6, 8), (13, 5)):
        seen = padded[:, 2 * row : 2 * row + 4, 2 * column : 2 * column + 4]
        np.testing.assert_array_equal(X[f"pixel_{row}_{column}"], (seen * weights).sum(axis=(1, 2)))
    split = named.load("mnist")
    assert (len(split.train), len(split.test), split.image_shape) == (133, 67, (14, 14))
    assert "OpenML data set 554, scaled to 14x14" in split.source
    assert [asked["data_id"] for asked in mnist.asked] == [554]
    assert cached(offline) == ["mnist.npz"]


def test_other_rows_from_openml_are_refused(mnist, offline):
    mnist.X[0, 0, 0] = 1
    with pytest.raises(FileError, match=f"OpenML.*{_sources.CONTENT['mnist']}"):
        named.load("mnist")
    assert cached(offline) == []


def test_the_content_sum_ignores_the_order_of_the_rows_and_nothing_else():
    X, y = np.array([[1, 2], [3, 4], [1, 2]]), np.array([0, 1, 0])
    assert _sources.content_sum(X, y) == hashlib.sha256(bytes([1, 2, 0, 1, 2, 0, 3, 4, 1])).hexdigest()
    assert _sources.content_sum(X[::-1], y[::-1]) == _sources.content_sum(X, y)
    for other in ((X, y[::-1] * 0), (X[:, ::-1], y), (X[:2], y[:2])):
        assert _sources.content_sum(*other) != _sources.content_sum(X, y)


def test_real_public_files_give_the_rows_of_the_local_ones(data_dir, server, monkeypatch):
    """The files as their publishers serve them, made from the local tables, pass the sums and give the same rows."""
    raw = {
        name: np.load(data_dir / "classification" / "raw" / f"{name}.npz") for name in ("letter", "satimage", "usps")
    }
    lines = zip(raw["letter"]["y"].tolist(), raw["letter"]["x"].tolist(), strict=True)
    server.files["letter-recognition.data"] = "".join(
        f"{chr(65 + c)},{','.join(map(str, r))}\n" for c, r in lines
    ).encode()
    sat = np.column_stack([raw["satimage"]["x"], raw["satimage"]["y"]]).tolist()
    first = int(raw["satimage"]["n_train"])
    for file, rows in (("sat.trn", sat[:first]), ("sat.tst", sat[first:])):
        server.files[file] = "".join(" ".join(map(str, row)) + "\n" for row in rows).encode()
    stream = io.BytesIO()
    savemat(stream, {"data": raw["usps"]["x"].reshape(10, 1100, 256).transpose(2, 1, 0)})
    server.files["usps_all.mat"] = stream.getvalue()
    downloaded = {name: named.load_raw(name) for name in raw}
    assert len(server.requests) == 4
    monkeypatch.setenv("TINYBAYES_DATA", str(data_dir))
    for name, (X, y) in downloaded.items():
        local_X, local_y = named.load_raw(name)
        np.testing.assert_array_equal(X, local_X)
        np.testing.assert_array_equal(y, local_y)
    assert len(server.requests) == 4
