"""Runs rows through the code of densities in C, C++ and Arduino on this machine, many densities in one build."""

import subprocess
from dataclasses import dataclass, field

import numpy as np

from c_host import SANITIZERS, compiler
from circuit_host import _codes
from targets_host import QUICK, unzipped
from tinybayes.deploy.export import export, write_files
from tinybayes.deploy.programs.density_plan import DensityPlan, make_density_plan
from tinybayes.infer.alarm import Alarm, integer_alarm
from tinybayes.infer.integer_density import integer_log_likelihood
from tinybayes.learn.circuits.latent_circuit import latent_circuit
from tinybayes.learn.circuits.latent_structure import Tree
from tinybayes.model import Circuit

RAW = """        {value} v[{n}];
        if (fread(v, sizeof v[0], {n}, stdin) != {n}) return 1;
        {name}_encode(v, x);
        if ({name}_log_likelihood_raw(v, &{name}_m) != {name}_log_likelihood(x, &{name}_m)) return 2;
        {alarm_raw}
"""
C_BLOCK = """    if ({name}_selftest(&{name}_m) != 0) return 4;
    for (r = 0; r < {rows}; ++r) {{
        {state} x[{n}];
{raw}        printf("%ld %d", (long){name}_log_likelihood(x, &{name}_m), {alarm});
        for (c = 0; c < {n}; ++c) printf(" %d", (int)x[c]);
        printf("\\n");
    }}
    for (r = 0; r < {hostile}; ++r) {{
        {state} x[{n}];
        if (fread(x, sizeof x[0], {n}, stdin) != {n}) return 1;
        printf("%ld %d", (long){name}_log_likelihood(x, &{name}_m), {alarm});
        for (c = 0; c < {n}; ++c) printf(" %d", (int)x[c]);
        printf("\\n");
    }}
"""
CPP_BLOCK = """    {{
        {name}::Memory memory;
        if ({name}::selftest(memory) != 0) return 4;
        for (int r = 0; r < {rows}; ++r) {{
            std::array<{name}::Value, {name}::variables> v;
            if (std::fread(v.data(), sizeof v[0], v.size(), stdin) != v.size()) return 1;
            const std::array<{name}::State, {name}::variables> x = {name}::encode(v);
            if ({name}::log_likelihood_raw(v, memory) != {name}::log_likelihood(x, memory)) return 2;
            std::printf("%ld %d", long({name}::log_likelihood_raw(v, memory)), int({alarm_raw}));
            for ({name}::State s : x) std::printf(" %d", int(s));
            std::printf("\\n");
        }}
        for (int r = 0; r < {hostile}; ++r) {{
            std::array<{name}::State, {name}::variables> x;
            if (std::fread(x.data(), sizeof x[0], x.size(), stdin) != x.size()) return 1;
            std::printf("%ld %d", long({name}::log_likelihood(x, memory)), int({alarm}));
            for ({name}::State s : x) std::printf(" %d", int(s));
            std::printf("\\n");
        }}
    }}
"""


@dataclass(frozen=True, eq=False)
class DensityCase:
    """A density, the name that its code gets, raw rows, hostile codes, and the options of the export."""

    name: str
    circuit: Circuit
    values: np.ndarray
    hostile: np.ndarray
    options: dict = field(default_factory=dict)

    @property
    def alarm(self) -> Alarm | None:
        return self.options.get("alarm")

    @property
    def plan(self) -> DensityPlan:
        return make_density_plan(self.circuit, **self.options)

    @property
    def given(self) -> bytes:
        features = self.plan.features
        codes = self.hostile.astype(features.state.removesuffix("_t")).tobytes()
        return self.values.astype(np.float32 if features.raw == "float" else np.int32).tobytes() + codes

    def expected(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The integers of Python: log-likelihoods, alarms, and the codes that a program shows."""
        features, cards = self.plan.features, self.circuit.cardinalities
        raw = np.where(self.values == -(2**31), np.nan, self.values) if features.raw == "int" else self.values
        known = np.array([_codes(v, column) for v, column in zip(self.circuit.nodes, raw.T, strict=True)]).T
        unseen = (known < 0) & ~np.isnan(raw)
        shown = np.where(known >= 0, known, features.missing)
        if self.alarm is not None:
            shown = np.where(unseen, features.unseen_code, shown)
        codes = np.concatenate([shown, self.hostile]).astype(np.int64)
        odd = (codes >= cards) & (codes != features.missing)
        X = np.where(codes < cards, codes, -1)
        if self.alarm is None:
            return integer_log_likelihood(self.circuit, X), np.zeros(len(X), dtype=bool), codes
        return *integer_alarm(self.circuit, self.alarm, X, odd.sum(axis=1)), codes


def _main(cases, block, header, begin, c):
    out = begin + "".join(f'#include "{header.format(case.name)}"\n' for case in cases)
    out += "".join(f"static struct {case.name}_memory {case.name}_m;\n" for case in cases) if c else ""
    out += "int main(void)\n{\n" + ("    int r, c;\n" if c else "")
    for case in cases:
        plan, name = case.plan, case.name
        at = {"name": name, "n": len(plan.variables), "value": plan.features.value}
        if c:
            at["alarm"] = f"{name}_alarm(x, &{name}_m)" if case.alarm else "0"
            same = f"if ({name}_alarm_raw(v, &{name}_m) != {name}_alarm(x, &{name}_m)) return 3;"
            at["raw"] = RAW.format(**at, alarm_raw=same if case.alarm else "")
        else:
            at["alarm"] = f"{name}::alarm(x, memory)" if case.alarm else "false"
            at["alarm_raw"] = f"{name}::alarm_raw(v, memory)" if case.alarm else "false"
        out += block.format(rows=len(case.values), hostile=len(case.hostile), state=plan.features.state, **at)
    return out + "    return 0;\n}\n"


def _ran(directory, command, cases):
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    done = subprocess.run(["./main"], cwd=directory, input=b"".join(c.given for c in cases), capture_output=True)
    assert done.returncode == 0, (done.returncode, done.stderr.decode())
    lines, found = iter(done.stdout.decode().splitlines()), []
    for case in cases:
        rows = len(case.values) + len(case.hostile)
        table = np.array([[int(word) for word in next(lines).split()] for _ in range(rows)])
        found.append((table[:, 0], table[:, 1].astype(bool), table[:, 2:]))
    return found


BEGIN = "#include <stdio.h>\n"


def run_c(directory, cases):
    for case in cases:
        write_files(export(case.circuit, "c", name=case.name, **case.options), directory)
    (directory / "main.c").write_text(_main(cases, C_BLOCK, "{}.h", BEGIN, True))
    flags = [*QUICK, *SANITIZERS, "-Wshadow"]
    return _ran(directory, [compiler(), *flags, "main.c", *(f"{c.name}.c" for c in cases), "-o", "main"], cases)


def run_cpp(directory, cases):
    for case in cases:
        write_files(export(case.circuit, "cpp", name=case.name, **case.options), directory)
    begin = "#include <array>\n#include <cstdio>\n"
    (directory / "main.cpp").write_text(_main(cases, CPP_BLOCK, "{}.hpp", begin, False))
    flags = [flag.replace("c99", "c++11") for flag in QUICK]
    return _ran(directory, ["g++", *flags, "-Wshadow", *SANITIZERS, "main.cpp", "-o", "main"], cases)


def run_arduino(directory, cases):
    for case in cases:
        unzipped(directory, export(case.circuit, "arduino", name=case.name, **case.options))
    (directory / "main.c").write_text(_main(cases, C_BLOCK, "{}.h", BEGIN, True))
    flags = [flag.replace("c99", "gnu11") for flag in QUICK]
    places = [f"-I{case.name}/src" for case in cases]
    sources = [f"{case.name}/src/{case.name}.c" for case in cases]
    return _ran(directory, [compiler(), *flags, *places, "main.c", *sources, "-o", "main"], cases)


RUNNERS = {"c": run_c, "cpp": run_cpp, "arduino": run_arduino}


def random_latent(variables, hidden, seed=0, cut=0.0):
    """The circuit of a random latent tree over variables; a share `cut` of its transitions is zero."""
    rng, nodes = np.random.default_rng(seed), max(1, len(variables) // 2)
    parent = (-1, *(int(rng.integers(0, n)) for n in range(1, nodes)))
    order = sorted(range(1, nodes), key=lambda n: _depth(parent, n))
    number = {0: 0} | {n: i + 1 for i, n in enumerate(order)}
    parent = (-1, *(number[parent[n]] for n in order))
    home = tuple(v % nodes for v in range(len(variables)))
    transition = rng.dirichlet(np.full(hidden, 0.5), (nodes, hidden)) + 1e-4
    gone = (rng.random(transition.shape) < cut) & ~np.eye(hidden, dtype=bool)
    transition = np.where(gone, 0.0, transition)
    transition /= transition.sum(axis=2, keepdims=True)
    emission = np.zeros((len(variables), hidden, max(v.cardinality for v in variables)))
    for v, variable in enumerate(variables):
        emission[v, :, : variable.cardinality] = rng.dirichlet(np.full(variable.cardinality, 0.5), hidden) + 1e-4
    emission /= emission.sum(axis=2, keepdims=True)
    return latent_circuit(variables, None, Tree(parent, home), transition, emission)


def _depth(parent, node):
    return 0 if parent[node] < 0 else 1 + _depth(parent, parent[node])
