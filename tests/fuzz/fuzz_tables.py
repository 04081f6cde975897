"""Tables as files: delimited text of several kinds, ARFF, Parquet and npz."""

import gzip
import io
import re
import zlib
from pathlib import Path
from random import Random

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from fuzz_readers import Mutant, Run

from mutate import Corpus
from tinybayes.data import _table
from tinybayes.data.readers import read_frame
from tinybayes.data.writers import write_frames

SUFFIXES = (".csv", ".csv", ".csv", ".tsv", ".data", ".txt", ".csv.gz")
pa.set_cpu_count(1)  # the processes of the fuzzer are enough
pa.set_io_thread_count(1)


def _read(path: Path, data: bytes) -> pd.DataFrame:
    frame = read_frame(path)
    assert len(frame) > 0
    assert len(set(frame.columns)) == len(frame.columns) > 0
    if zlib.crc32(data) % 8 == 1:  # some are written and read again
        copy = path.parent / "again.tsv"  # whose cells no other mark can part
        write_frames([frame], copy)
        assert read_frame(copy).shape == frame.shape
    return frame


def _limits(data: bytes) -> None:
    """Let some inputs be large files, which are read in blocks."""
    large = zlib.crc32(data) % (2 if data[:4] == b"PAR1" else 8) == 0
    _table.SMALL, _table.BLOCK = (40, 300) if large else (256 << 20, 4 << 20)


def csv() -> tuple[Mutant, Run]:
    """Delimited text; the first byte of an input says which suffix the file has."""
    texts = [
        'a,b,c\n1,"x, y",0.5\n?,z,1e3\n3,"two\nlines",\n',
        "id;name;flag\n1;a;true\n2;b;False\n3;;\n",
        "x\ty\n1\t2\n3\t4\n",
        "0,1,1\n1,0,0\n0,0,1\n",
        "0 1 1\n1 0 0\n",
        "one|two\nNA|1\nnull|2.5\nnan|-3\n",
        "\ufeffä,ö\nü,ß\n007,2024-01-01\n",
        "\n\nn\n1\n2\n9223372036854775808\n",
    ]
    tokens = [",", ";", "\t", "|", '"', '""', "\n", "\r\n", "?", "NA", "nan", "true", "FALSE", "a", "x0", " ", '"\n"']
    corpus = Corpus([text.encode() for text in texts], tokens)

    def mutant(rng: Random) -> bytes:
        return bytes([rng.randrange(len(SUFFIXES))]) + corpus.mutant(rng)

    def run(data: bytes, directory: Path) -> None:
        suffix, text = SUFFIXES[data[0] % len(SUFFIXES)], data[1:]
        if suffix.endswith(".gz"):
            packed = bytearray(gzip.compress(text, 1, mtime=0))
            if data[-1:] == b"\n":  # a damaged one
                packed[len(text) % len(packed)] ^= 4
            text = bytes(packed)
        _limits(data)
        path = directory / f"input{suffix}"
        path.write_bytes(text)
        frame = _read(path, data)
        if b'"' not in data and not suffix.endswith(".gz"):
            lines = sum(line != b"" for line in re.split(rb"[\r\n]", text.removeprefix(b"\xef\xbb\xbf")))
            assert len(frame) == lines - (suffix != ".data"), "a row was lost or made up"

    return mutant, run


def arff() -> tuple[Mutant, Run]:
    texts = [
        "@relation r\n@attribute a numeric\n@attribute 'b c' {x,'y z'}\n@data\n1,x\n?,'y z'\n{1 x}\n",
        '% weather\n@RELATION w\n@ATTRIBUTE o {s, r, "o v"}\n@ATTRIBUTE t real\n@ATTRIBUTE n integer\n'
        "@ATTRIBUTE s string\n@attribute d date 'yyyy'\n@DATA\ns,1.5,3,'it\\'s',2020\nr,?,?,\"a\",2021\n",
        "@relation 'sparse'\n@attribute p {0,1}\n@attribute q numeric\n@data\n{}\n{0 1, 1 3.5}\n{1 2}\n1,4\n",
    ]
    tokens = ["@relation", "@attribute", "@data", "numeric", "integer", "string", "{", "}", "'", '"', "\\", "?", "%"]
    tokens += [",", "x", "{0 1}", "{x,y}", "date", "\\u0041", ", {2}"]
    corpus = Corpus([text.encode() for text in texts], tokens)

    def run(data: bytes, directory: Path) -> None:
        _limits(data)
        path = directory / "input.arff"
        path.write_bytes(data)
        _read(path, data)

    return corpus.mutant, run


def _binary(seeds: list[bytes], tokens: list[bytes], suffix: str) -> tuple[Mutant, Run]:
    corpus = Corpus(seeds, tokens)

    def mutant(rng: Random) -> bytes:
        data = rng.choice(seeds)
        for _ in range(rng.choice((1, 1, 2, 4))):
            data = corpus._change_bytes(rng, data)
        return data

    def run(data: bytes, directory: Path) -> None:
        _limits(data)
        path = directory / f"input{suffix}"
        path.write_bytes(data)
        _read(path, data)

    return mutant, run


def parquet() -> tuple[Mutant, Run]:
    frames = [
        pd.DataFrame({"a": [1, 2, 3], "b": ["x", None, "z"]}),
        pd.DataFrame({"f": [0.5, None], "c": pd.Categorical(["u", "v"]), "t": [True, False]}),
    ]
    seeds = []
    for number, frame in enumerate(frames):
        for packed, rows in (("none", 1), ("snappy", 2), ("gzip", None)):
            file, table = io.BytesIO(), pa.Table.from_pandas(frame)
            pq.write_table(table, file, compression=packed, use_dictionary=number == 0, row_group_size=rows)
            seeds.append(file.getvalue())
    return _binary(seeds, [b"PAR1", b"\x15", b"\x00", b"schema", b"pandas"], ".parquet")


def npz() -> tuple[Mutant, Run]:
    seeds = []
    for save in (np.savez, np.savez_compressed):
        file = io.BytesIO()
        save(file, X=np.arange(6).reshape(2, 3), y=np.array(["u", "v"]), names=np.array(["a", "b", "c"]))
        seeds.append(file.getvalue())
    return _binary(seeds, [b"PK\x03\x04", b"'descr': '|O'", b"(2, 3)", b"<i8", b"|O", b"True", b"X.npy"], ".npz")
