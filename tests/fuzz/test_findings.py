"""What fuzzing has found, one test each, so that it stays mended."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from experiments.store import read_store
from tinybayes.cli.explore import parse_time
from tinybayes.data.readers import read_frame
from tinybayes.deploy.export import export
from tinybayes.deploy.files.uai_marginals import read_marginals
from tinybayes.deploy.programs.c import to_c
from tinybayes.errors import FileError, TinybayesError
from tinybayes.infer.scores import predict_codes
from tinybayes.learn.circuits.checkpoint import Snapshot, learn_circuit_resumable, write_checkpoint
from tinybayes.learn.circuits.options import CircuitOptions
from tinybayes.model import CPD, BayesNet, Codebook, Dataset, Float, Variable
from tinybayes.report.front import read_front
from tinybayes.search.budget import parse_size
from tinybayes.serve.source import Source

INPUTS = Path(__file__).parent / "inputs"


@pytest.mark.parametrize("text", ["9" * 400, "9" * 400 + "kB", "0.0000001B", "0", "-1", "1e5"])
def test_a_budget_is_a_number_of_bits(text):
    with pytest.raises(TinybayesError, match="a size such as 4kB"):
        parse_size(text)
    assert parse_size("0.5 kB") == 4000
    assert parse_size("123456789012345 MiB") == 123456789012345 * 2**23


def test_a_time_is_finite():
    with pytest.raises(TinybayesError, match="a time such as"):
        parse_time("9" * 400)
    assert parse_time("1.5h") == 5400


def put(directory, name, text):
    (directory / name).write_text(text)
    return directory


def test_a_front_may_be_deep_and_its_numbers_large(tmp_path):
    deep = "[" * 900 + "]" * 900
    with pytest.raises(FileError, match=r"front\.json: expected JSON"):
        read_front(put(tmp_path, "front.json", f'{{"models": [{{"id": 1, "settings": {{"a": {deep}}}}}]}}'))
    with pytest.raises(FileError, match="a number, not negative"):
        read_front(put(tmp_path, "front.json", json.dumps({"models": [{"id": 1, "bits": 10**400}]})))


@pytest.mark.parametrize("updated", [10**400, -1, "now", None])
def test_a_search_may_say_any_time(tmp_path, updated):
    put(tmp_path, "progress.json", json.dumps({"updated": updated, "best": [float("nan")]}))
    found = Source(tmp_path).progress()
    assert (found["age"], found["running"], found["best"]) == (0.0, False, [None])


def test_what_a_search_says_may_be_deep(tmp_path):
    assert Source(put(tmp_path, "progress.json", '{"a": ' + "[" * 900 + "]" * 900 + "}")).progress() is None


@pytest.mark.parametrize("text", ['sweep = ["a"]', "sweep = [[1]]", "sweep = 3", "nets = " + "[" * 3000 + "]" * 3000])
def test_sweeps_are_tables(tmp_path, text):
    pytest.importorskip("jax")
    from experiments.sweep import read_sweeps

    put(tmp_path, "s.toml", text)
    with pytest.raises(FileError, match="a file of sweeps"):
        read_sweeps(tmp_path / "s.toml")


def test_lines_of_a_store_that_cannot_be_read_are_left_out(tmp_path):
    line = b'{"sweep": "s", "stage": 1, "fold": 0, "setting": 0}\n'
    (tmp_path / "s.jsonl").write_bytes(b"\xff\n" + b"[" * 3000 + b"\n" + line)
    assert list(read_store(tmp_path / "s.jsonl")["s"]) == [(1, 0, 0)]


def grown(tmp_path):
    """Learn a circuit with a checkpoint, and return what repeats it and what the checkpoint says."""
    rng = np.random.default_rng(5)
    a = rng.integers(0, 2, 60)
    X = np.column_stack([a, a ^ (rng.random(60) < 0.1), a & rng.integers(0, 2, 60)]).astype(np.int32)
    data = Dataset(tuple(Variable(f"v{i}", (0, 1)) for i in range(3)), None, X, None, None)
    learn_circuit_resumable(data, tmp_path / "c", CircuitOptions(edge_price=0.02))
    from safetensors.numpy import load_file

    found = Snapshot(**load_file(tmp_path / "c"))
    header = (tmp_path / "c").read_bytes()
    about = json.loads(json.loads(header[8 : 8 + int.from_bytes(header[:8], "little")])["__metadata__"]["about"])
    return lambda: learn_circuit_resumable(data, tmp_path / "c", CircuitOptions(edge_price=0.02)), found, about


def test_checkpoints_with_splits_that_cannot_be(tmp_path):
    again, found, about = grown(tmp_path)
    assert again().complete
    i = int(found.splits[0, 0])
    wrong = {
        "twice": np.concatenate([found.splits, found.splits[:1]]),
        "cycle": np.concatenate([found.splits, [[found.splits[0, 1], i]]]).astype(np.int32),
        "odd": found.splits.reshape(-1)[:-1],
        "floats": found.splits.astype(np.float64),
    }
    for splits in wrong.values():
        write_checkpoint(tmp_path / "c", Snapshot(splits, found.candidate, found.cost, found.looked), about)
        with pytest.raises(TinybayesError, match="splits"):
            again()


def test_marginals_with_endless_numbers(tmp_path):
    put(tmp_path, "m", "MAR\n1\n" + "8" * 5000)
    with pytest.raises(FileError, match="a number of states"):
        read_marginals(tmp_path / "m")


@pytest.mark.parametrize("text", ["a\0,b\n1,2\n3,4\n", "a\0\n1\n2\n"])
def test_no_row_is_lost_after_names_with_a_nul(tmp_path, text):
    with pytest.raises(FileError, match="without the character NUL"):
        read_frame(put(tmp_path, "t.csv", text) / "t.csv")


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["histogram.parquet", "type.parquet"])
def test_parquet_whose_columns_are_described_wrongly(name):
    """Arrow would end the process, so this runs in another one; the limits let the file be a large one."""
    code = (
        "import sys; from tinybayes.data import _table, readers; from tinybayes.errors import FileError\n"
        "_table.SMALL, _table.BLOCK = 40, 300\n"
        "try:\n    readers.read_frame(sys.argv[1])\nexcept FileError:\n    pass\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(INPUTS / name)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("line", ["w = {}x", "{}x: a=1", "w = 1.{}x", "w = .{}x", "w = 1e{}x"])
def test_a_long_word_that_is_nearly_a_number_takes_no_longer(tmp_path, line):
    """A pattern that gave digits back took time with their square: minutes for these."""
    put(tmp_path, "long.txt", "variable a 0 1\n" + line.format("7" * 100_000))
    code = "import sys\nfrom tinybayes.deploy.files.clauses import read_clauses\nread_clauses(sys.argv[1])"
    command = [sys.executable, "-c", code, str(tmp_path / "long.txt")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert "FileError" in done.stderr


def test_levels_that_no_prediction_looks_at_are_not_written():
    """A constant table is a warning of compilers, and none may come."""
    form = Codebook((-2.0, -1.0, 0.0))
    feature, target = Variable("x", (0, 1)), Variable("y", (0, 1))
    codes = [CPD((), np.array([[0, 1]], np.uint8), form), CPD((), np.array([[1, 2]], np.uint8), form)]
    assert "level[" not in to_c(BayesNet((feature,), target, tuple(codes)))["model.c"]
    codes[0] = CPD((1,), np.array([[0, 1], [1, 2]], np.uint8), form)
    assert "level[" in to_c(BayesNet((feature,), target, tuple(codes)))["model.c"]


def test_a_row_that_no_class_can_have_gets_the_same_label_in_exported_code():
    """A table without the class that forbids a state was left out of predictions, but not out of the scores."""
    a, b, y = Variable("a", (0, 1)), Variable("b", (0, 1)), Variable("y", ("no", "yes"))
    tables = ((), [[1.0, 0.0]]), ((2,), [[0.9, 0.1], [0.1, 0.9]]), ((), [[0.5, 0.5]])
    with np.errstate(divide="ignore"):
        cpds = tuple(CPD(parents, np.log(np.float32(table)), Float(32)) for parents, table in tables)
    net = BayesNet((a, b), y, cpds)
    rows = [[0, 0], [0, 1], [1, 0], [1, 1]]
    names = {}
    exec(export(net, "micropython", name="m")["m.py"], names)
    expected = predict_codes(net, np.array(rows))
    assert expected.tolist() == [0, 1, 0, 0]
    assert [names["predict"](row) for row in rows] == expected.tolist()


def test_a_mark_of_the_encoding_is_no_name_of_a_column(tmp_path):
    """It was kept as a name, and lost with the first row when the table was written and read again."""
    path = tmp_path / "table.csv"
    path.write_text(' \ufeff \n"x"\n""\n', encoding="utf-8")
    with pytest.raises(TinybayesError, match="a name for every column"):
        read_frame(path)
    path.write_text("a, \ufeffb\n1,2\n", encoding="utf-8")
    assert read_frame(path).columns.tolist() == ["a", "b"]


def test_a_header_of_an_array_that_does_not_end_is_refused(tmp_path):
    """NumPy takes headers that it cannot read for those of Python 2, and cleans them up with `tokenize`."""
    text = b"{'descr': '<i8', 'fortran_order': False, 'shape': (3,\n"
    header = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
    path = tmp_path / "t.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X.npy", header + bytes(24))
    with pytest.raises(FileError):
        read_frame(path)
