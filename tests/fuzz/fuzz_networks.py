"""Networks, evidence, marginals, circuits and clauses as text; and names that are hard to write."""

import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from fuzz_readers import Mutant, Run

import zoo
from bif_texts import DOG, SMALL
from mutate import Corpus
from tinybayes.cost import model_cost
from tinybayes.deploy import load, save
from tinybayes.deploy.files.ac import read_ac, write_ac
from tinybayes.deploy.files.bif import read_bif, write_bif
from tinybayes.deploy.files.clauses import read_clauses
from tinybayes.deploy.files.uai import read_evidence, read_uai, read_uai_factors, write_uai
from tinybayes.deploy.files.uai_marginals import read_marginals, write_marginals
from tinybayes.deploy.files.xmlbif import read_xmlbif, write_xmlbif
from tinybayes.errors import TinybayesError
from tinybayes.infer import class_scores, compile_circuit
from tinybayes.infer.ask import parse_query
from tinybayes.infer.circuit import log_evidence
from tinybayes.model import BayesNet, Circuit, Cuts, LogLinear, Variable

SHARE = 4  # one of so many accepted inputs is also written and read again


def chosen(data: bytes) -> bool:
    """Tell whether an input is one of those that are looked at closely."""
    return zlib.crc32(data) % SHARE == 0


def use_network(net: BayesNet) -> None:
    """Price a network and score a row."""
    assert model_cost(net).parameters > 0
    assert all(cpd.log_parameters.max() < np.inf for cpd in net.cpds)
    if net.target is not None:
        scores = class_scores(net, np.zeros((1, len(net.variables)), np.int32))
        assert scores.shape == (1, net.target.cardinality)


def use_circuit(circuit: Circuit) -> None:
    """Price a circuit and evaluate it with nothing known."""
    assert model_cost(circuit).edges == circuit.n_edges
    assert log_evidence(circuit, np.full((1, len(circuit.nodes)), -1)).shape == (1,)


def use_log_linear(model: LogLinear) -> None:
    """Weigh a row."""
    assert model.log_weights(np.zeros((1, len(model.variables)), np.int32)).shape == (1,)


def written(write: Callable[[Any, Path], None], model: Any, path: Path) -> bytes:
    write(model, path)
    return path.read_bytes()


def networks(seed: int = 1) -> list[BayesNet]:
    """A few small networks with and without a class, names that need quotes, cut points and states of all types."""
    rng = np.random.default_rng(seed)
    odd = [
        Variable("a b", ("x y", '"', "ä")),
        Variable("n", (1, 2)),
        Variable("t", (False, True)),
        Variable.from_encoding("cut", Cuts([0.5, 2.0])),
        Variable("class", ("no", "yes")),
    ]
    return [zoo.sprinkler(), zoo.random_net(rng, 3), zoo.random_net(rng, 4, variables=odd), zoo.random_net(rng, 2)]


def _text(corpus: Corpus, suffix: str, use: Callable[[Path, bytes], None]) -> tuple[Mutant, Run]:
    def run(data: bytes, directory: Path) -> None:
        path = directory / f"input{suffix}"
        with open(path, "wb") as file:
            file.write(data)
        use(path, data)

    return corpus.mutant, run


def _network_reader(suffix: str, read: Any, write: Any, seeds: list[bytes], tokens: list[str]) -> tuple[Mutant, Run]:
    def use(path: Path, data: bytes) -> None:
        net = read(path)
        use_network(net)
        assert net.is_normalized(2e-3)
        if chosen(data):
            copy = path.with_name(f"again{suffix}")
            write(net, copy)
            assert read(copy) == net

    return _text(Corpus(seeds, tokens), suffix, use)


def _seeds(write: Callable[[Any, Path], None], suffix: str) -> list[bytes]:
    from fuzz_harness import place

    directory = place()
    found = [written(write, net, directory / f"seed{suffix}") for net in networks()]
    for file in directory.iterdir():
        file.unlink()
    directory.rmdir()
    return found


def bif() -> tuple[Mutant, Run]:
    tokens = ["network", "variable", "probability", "property", "type", "discrete", "table", "default", "target"]
    tokens += ["{", "}", "(", ")", "[", "]", ";", ",", "|", "//", "/*", "*/", '"', "=", "a", "property states = int;"]
    tokens += ["property edges = 1 2;", "property target = a;", "[ 2 ]", "(yes)", "table 0.5, 0.5;"]
    return _network_reader(
        ".bif", read_bif, write_bif, [*_seeds(write_bif, ".bif"), SMALL.encode(), DOG.encode()], tokens
    )


def xmlbif() -> tuple[Mutant, Run]:
    tokens = ["<", ">", "/", "&", "&amp;", "&#0;", "&a;", "<NAME>", "</NAME>", "<FOR>", "<GIVEN>a</GIVEN>", "<TABLE>"]
    tokens += ["<!--", "-->", "]]>", "<![CDATA[", '<!ENTITY a "b">', "<!DOCTYPE BIF [", "]>", "<?xml version='1.0'?>"]
    tokens += ['encoding="utf-16"', 'encoding="hex"', "<PROPERTY>states = int</PROPERTY>", "0.5 0.5", "<BIF>", "<a>"]
    doctype = (
        b'<?xml version="1.0"?>\n<!DOCTYPE BIF [\n<!ELEMENT BIF (NETWORK)*>\n<!ATTLIST BIF VERSION CDATA "0.3">\n]>\n'
    )
    seeds = _seeds(write_xmlbif, ".xmlbif")
    seeds.append(doctype + seeds[0].split(b"\n", 1)[1])
    return _network_reader(".xmlbif", read_xmlbif, write_xmlbif, seeds, tokens)


def uai() -> tuple[Mutant, Run]:
    def use(path: Path, data: bytes) -> None:
        try:
            use_log_linear(read_uai_factors(path))
        except TinybayesError:
            if not data.lstrip(b"\xef\xbb\xbf \t\r\n\x0b\x0c").startswith(b"BAYES"):
                raise
        net = read_uai(path) if b"BAYES" in data else None
        if net is not None:
            use_network(net)
            if chosen(data):
                write_uai(net, path.with_name("again.uai"))
                assert read_uai(path.with_name("again.uai")) == net

    markov = b"MARKOV\n3\n2 2 3\n2\n2 0 1\n2 1 2\n\n4\n 1.5 0 2 1\n\n6\n1 1 2 3 4 5\n"
    seeds = [*_seeds(write_uai, ".uai"), markov, b"MARKOV 1 2 0"]
    return _text(Corpus(seeds, ["BAYES", "MARKOV", "0", "1", "2", "3", "0.5", "\n", " "]), ".uai", use)


def evidence() -> tuple[Mutant, Run]:
    def use(path: Path, data: bytes) -> None:
        for case in read_evidence(path):
            assert all(variable >= 0 and state >= 0 for variable, state in case.items())

    seeds = [b"2 0 1 3 0\n", b"0\n", b"2\n1 0 1\n2 1 1 2 0\n", b"1\n3 0 0 1 1 2 2\n", b"5 0 1 1 1 2 1 3 1 4 1"]
    return _text(Corpus(seeds, ["0", "1", "2", "5", " ", "\n"]), ".evid", use)


def marginals() -> tuple[Mutant, Run]:
    def use(path: Path, data: bytes) -> None:
        found = read_marginals(path)
        if chosen(data):
            write_marginals(found, path.with_name("again.mar"))
            again = read_marginals(path.with_name("again.mar"))
            assert all(np.array_equal(a, b) for a, b in zip(found, again, strict=True))

    seeds = [b"MAR\n2 2 0.25 0.75 3 0.5 0.5 0\n", b"MAR\n1\n2 2 0.25 0.75 1 1.0\n", b"MAR 1 2 0 1"]
    return _text(Corpus(seeds, ["MAR", "1", "2", "0.5", "\n"]), ".mar", use)


def ac() -> tuple[Mutant, Run]:
    from fuzz_harness import place

    def use(path: Path, data: bytes) -> None:
        circuit = read_ac(path)
        use_circuit(circuit)
        if chosen(data):
            write_ac(circuit, path.with_name("again.ac"))
            again = read_ac(path.with_name("again.ac"))
            assert (again.kind == circuit.kind).all()
            assert (again.children == circuit.children).all()

    directory = place()
    circuits = [zoo.hand_circuit(), *(compile_circuit(net) for net in networks())]
    seeds = [written(write_ac, circuit, directory / "seed.ac") for circuit in circuits]
    (directory / "seed.ac").unlink()
    directory.rmdir()
    return _text(
        Corpus(seeds, ["n", "v", "+", "*", "EOF", "(2 2)", "0", "1", "n 0.5", "v 0 1", "+ 0 1", "\n"]), ".ac", use
    )


def clauses() -> tuple[Mutant, Run]:
    def use(path: Path, data: bytes) -> None:
        use_log_linear(read_clauses(path))

    seeds = [
        b"variable weather sunny rainy snow  # states\nu = 0.5\nu: a | b\nu: b | !c\n-1.25: !a | weather=rainy\n"
        b"hard: weather!=snow | a\n",
        b"1: a\n2.5e-1: !a | b\nhard: b | c.d[1]\n",
        b"# nothing\nw = -3\nvariable x p q\nw: x=p\n\nw: x!=q | y\n",
    ]
    tokens = ["variable", "hard", ":", "|", "!", "=", "!=", "#", "a", "u", "u = 1", "1: a | b", "a=0", "a=2", "\n"]
    return _text(Corpus(seeds, tokens), ".clauses", use)


PIECES = list(" \t\n\r\0\x1f\x7f\x85\u2028\ufeff\ud800é😀=,|;:'\"\\/<>&%#@{}()[]?!.-+_10aZ")
PIECES += [
    "//",
    "/*",
    "*/",
    "]]>",
    "&amp;",
    "\\n",
    "\\u0041",
    "network",
    "table",
    "default",
    "nan",
    "True",
    "1e5",
    "%s",
]


def names() -> tuple[Mutant, Run]:
    """Names and states of any letters, written in every format and read again; an input is a seed of the names."""

    def text(rng: Random) -> str:
        return "".join(rng.choice(PIECES) for _ in range(rng.randrange(0, 7)))

    def state(rng: Random) -> Any:
        return rng.choice((text, text, text, lambda r: r.randrange(-3, 3), lambda r: r.random(), lambda r: True))(rng)

    def run(data: bytes, directory: Path) -> None:
        rng = Random(int.from_bytes(data[:8], "little"))
        variables = [Variable(text(rng), tuple(state(rng) for _ in range(rng.randrange(1, 4)))) for _ in range(2)]
        form = rng.choice((".bif", ".xmlbif", ".tb"))
        tables = [np.full((1, v.cardinality), 1 / v.cardinality) for v in variables]
        cpds = tuple(zoo.cpd(table) for table in tables)
        net = (
            BayesNet(tuple(variables[:1]), variables[1], cpds)
            if rng.random() < 0.5
            else BayesNet(variables, None, cpds)
        )
        read, write = {".bif": (read_bif, write_bif), ".xmlbif": (read_xmlbif, write_xmlbif), ".tb": (load, save)}[form]
        path = directory / f"names{form}"
        write(net, path)
        assert read(path) == net
        with suppress(TinybayesError):  # a name may hold a comma or a bar
            parse_query(f"{variables[0].name}={variables[0].states[0]} | {variables[1].name}=", variables)

    return lambda rng: rng.randbytes(8), run
