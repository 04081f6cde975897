"""Words of the command line and the small files of a search: queries, sizes, times, fronts, sweeps, stores."""

import json
import math
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from fuzz_networks import chosen
from fuzz_readers import Mutant, Run

import zoo
from mutate import Corpus, change_json, json_text
from tinybayes.errors import TinybayesError
from tinybayes.infer import ask_codes, compile_circuit
from tinybayes.infer.ask import parse_query
from tinybayes.model import Cuts, Variable


def word(data: bytes) -> str:
    """Return the text that the command line would make of bytes."""
    return data.decode("utf-8", "surrogateescape")


def queries() -> tuple[Mutant, Run]:
    """Questions of the command line; the app's, which are numbers, are tried with the same texts."""
    try:
        from tinybayes.serve.answers import parse_known
    except ImportError:  # the app is optional
        parse_known = None  # type: ignore[assignment]
    nodes = [
        Variable("a", (0, 1)),
        Variable("b=c", ("yes", "no", "y|n", "x,y")),
        Variable("flag", (False, True)),
        Variable.from_encoding("cut", Cuts([-1.5, 0.0, 2.0])),
        Variable("t e", (0.5, 1e308, "nan", "")),
    ]
    net = zoo.random_net(np.random.default_rng(6), 4, variables=nodes)
    circuit = compile_circuit(net)
    seeds = [
        b"a=1",
        b"a=1, b=c=yes | flag=true, cut=0.3",
        b"| cut=-7",
        b"t e=0.5 | a=0, a=0",
        b"0.1,2.0",
        b"",
        b"cut=1e3",
    ]
    tokens = ["a", "b=c", "flag", "cut", "t e", "=", ",", "|", "yes", "no", "True", "< -1.5", "0.1", "4.3", " "]
    corpus = Corpus(seeds, tokens)

    def run(data: bytes, directory: Path) -> None:
        text = word(data)
        if parse_known is not None:
            with suppress(TinybayesError):
                known = parse_known(text, net)
                assert all(-1 <= code < node.cardinality for code, node in zip(known, net.nodes, strict=True))
        query, evidence = parse_query(text, circuit.nodes)
        for row in (query, evidence):
            assert all(-1 <= code < node.cardinality for code, node in zip(row, circuit.nodes, strict=True))
        if chosen(data):
            found = ask_codes(circuit, query, evidence)
            assert found.probability is None or 0 <= found.probability <= 1 + 1e-9

    return corpus.mutant, run


def options() -> tuple[Mutant, Run]:
    """Sizes, times and shapes of images of `explore`."""
    from tinybayes.cli._options import image_shape_of
    from tinybayes.cli.explore import parse_time
    from tinybayes.search.budget import parse_clock, parse_latency, parse_size

    parsers: tuple[Callable[[str], Any], ...] = (parse_size, parse_time, image_shape_of, parse_latency, parse_clock)
    seeds = [b"4kB", b"512B", b"2KiB", b"32kbit", b"0.5 MB", b"90s", b"10m", b"2h", b"28x28", b"17", b"1.5h"]
    seeds += [b"5ms", b"300us", b"48MHz", b"32768Hz"]
    corpus = Corpus(seeds, ["B", "kB", "KiB", "bits", "s", "m", "h", "x", ".", " ", "4", "1e3", "-"])

    def run(data: bytes, directory: Path) -> None:
        text, refused = word(data), 0
        for parse in parsers:
            try:
                found = parse(text)
                values = found if isinstance(found, tuple) else (found,)
                assert all(value > 0 and math.isfinite(value) for value in values), (parse, values)
            except TinybayesError as problem:
                refused += 1
                last = problem
        if refused == len(parsers):
            raise last

    return corpus.mutant, run


MODEL = {
    "id": "1",
    "family": "naive",
    "label": "naive Bayes",
    "settings": {"bits": 3, "view": "mdlp"},
    "validation_error": 0.1,
    "test_error": None,
    "on_front": True,
    "file": "models/1.tb",
    "bits": 800,
    "bytes": 100,
    "operations": 300,
    "multiplications": 0,
    "parameters": 100,
    "boards": [{"board": "m0", "cycles": 10}],
    "history": [[1, 0.5], [2, 0.25]],
    "confusion": [[3, 1], [0, 4]],
    "reliability": [[0.5, 0.4, 10]],
    "explanations": [
        {
            "row": 3,
            "prior": 0.1,
            "total": 1.0,
            "others": 0.0,
            "rest": 0.0,
            "truth": "a",
            "label": "b",
            "against": "c",
            "contributions": [{"feature": "f", "value": "1", "log_odds": 0.5}],
        }
    ],
}
FRONT = {
    "title": "t",
    "command": "tinybayes explore",
    "seed": 0,
    "created": "2025",
    "data": {"rows": 10, "classes": ["a", "b"]},
    "budget": {"bits": 8000},
    "chosen": "1",
    "provenance": {"versions": {}},
    "models": [MODEL, {**MODEL, "id": "2", "file": None, "on_front": False}],
}


def _documents(seeds: list[Any], suffix: str, use: Callable[[Path], None]) -> tuple[Mutant, Run]:
    """Return inputs that are changed as JSON, and now and then as bytes."""
    texts = [json.dumps(seed) for seed in seeds]
    corpus = Corpus(
        [text.encode() for text in texts], ["{", "}", "[", "]", ",", ":", "null", '"id"', "NaN", "Infinity"]
    )

    def mutant(rng: Random) -> bytes:
        if rng.random() < 0.25:
            return corpus.mutant(rng)
        document = json.loads(rng.choice(texts))
        change_json(rng, document)
        return json_text(rng, document).encode("utf-8", "surrogatepass")

    def run(data: bytes, directory: Path) -> None:
        path = directory / suffix
        with open(path, "wb") as file:
            file.write(data)
        use(path)

    return mutant, run


def fronts() -> tuple[Mutant, Run]:
    from tinybayes.report.front import read_front

    def use(path: Path) -> None:
        front = read_front(path.parent)
        json.dumps(front, allow_nan=False)
        assert front["models"]

    return _documents([FRONT, {"models": [{"id": 1}]}], "front.json", use)


def progress() -> tuple[Mutant, Run]:
    """What a search says of itself: nothing that it says is an error, it is only not believed."""
    from tinybayes.search import PROGRESS
    from tinybayes.serve.source import Source, is_running

    said = {"runs": 3, "seconds": 1.5, "seconds_left": 2.0, "best": {"id": "1", "error": 0.5}, "phase": "searching"}
    said |= {"pid": 1, "host": "h", "updated": 1.7e9}

    def use(path: Path) -> None:
        found = Source(path.parent).progress()
        assert found is None or found["running"] in (True, False)
        if found is not None:
            is_running({**found, "updated": found.get("updated")})

    return _documents([said, {**said, "phase": "done", "best": None}], PROGRESS, use)


def sweeps() -> tuple[Mutant, Run]:
    from experiments.sweep import read_sweeps

    text = b"""[[sweep]]
name = "letter-nb"
data = "letter"
structure = "naive"
lam = [1.0, 3.0]
learning_rates = [3e-3, 3e-2]
bits = [[3, 1], [2, 0]]
epochs = 10
per_row = false

[[nets]]
name = "n"
data = "letter"
"""
    tokens = ["[[sweep]]", "[[nets]]", "[sweep]", "name", "=", "'", '"""', "[", "]", "{", "}", "data = 1", "1979-05-27"]
    tokens += ["k = 3", "sweep = 3", 'nets = ["a"]', "x.y = 1", "inf", "true", "#", "0b1", "seed = 1"]
    corpus = Corpus([text, b"sweep = []\n"], tokens)

    def run(data: bytes, directory: Path) -> None:
        path = directory / "sweeps.toml"
        path.write_bytes(data)
        read_sweeps(path)

    return corpus.mutant, run


def stores() -> tuple[Mutant, Run]:
    """Finished runs of a sweep; lines that cannot be read are left out."""
    from experiments.store import read_store

    record = {"sweep": "s", "stage": 1, "fold": 0, "setting": 3, "validation_error": 0.5, "test_error": 0.5}
    seed = "".join(json.dumps({**record, "setting": i}) + "\n" for i in range(3)).encode()
    corpus = Corpus([seed, b""], ["{", "}", "[", "]", '"sweep"', "null", ":", ",", "\n", "NaN"])

    def run(data: bytes, directory: Path) -> None:
        path = directory / "store.jsonl"
        path.write_bytes(data)
        for runs in read_store(path).values():
            assert all(len(key) == 3 for key in runs)

    return corpus.mutant, run
