"""Runs raw rows through the code of circuits in every language on this machine, many circuits in one build."""

import subprocess
from dataclasses import dataclass, field

import numpy as np

from c_host import SANITIZERS, compiler
from targets_host import QUICK, unzipped
from tinybayes.deploy.export import export, write_files
from tinybayes.deploy.programs.circuit_plan import CircuitPlan, make_circuit_plan
from tinybayes.model import Circuit, Cuts, Grid, Integers

C_BLOCK = """    if ({name}_selftest(&{name}_m) != 0) return 4;
    for (r = 0; r < {rows}; ++r) {{
        {value} v[{n}];
        {state} x[{n}];
        {score} p[{states}], q[{states}];
        if (fread(v, sizeof v[0], {n}, stdin) != {n}) return 1;
        {name}_encode(v, x);
        printf("%d %d", (int){name}_predict_raw(v, &{name}_m), {name}_posterior_raw(v, &{name}_m, p));
        if ((int){name}_predict(x, &{name}_m) != (int){name}_predict_raw(v, &{name}_m)) return 2;
        (void){name}_posterior(x, &{name}_m, q);
        if (memcmp(p, q, sizeof p) != 0) return 3;
        for (c = 0; c < {states}; ++c) printf(" {print}", {cast}p[c]);
        for (c = 0; c < {n}; ++c) printf(" %d", (int)x[c]);
        printf("\\n");
    }}
"""
CPP_BLOCK = """    for (int r = 0; r < {rows}; ++r) {{
        {name}::Memory memory;
        if (r == 0 && {name}::selftest(memory) != 0) return 4;
        std::array<{name}::Value, {name}::variables> v;
        std::array<{name}::Posterior, {name}::states> p, q;
        if (std::fread(v.data(), sizeof v[0], v.size(), stdin) != v.size()) return 1;
        const std::array<{name}::State, {name}::variables> x = {name}::encode(v);
        const bool possible = {name}::posterior_raw(v, memory, p);
        std::printf("%d %d", int({name}::predict_raw(v, memory)), int(possible));
        if ({name}::predict(x, memory) != {name}::predict_raw(v, memory)) return 2;
        if ({name}::posterior(x, memory, q) != possible || p != q) return 3;
        for ({name}::Posterior one : p) std::printf(" {print}", {cast}one);
        for ({name}::State s : x) std::printf(" %d", int(s));
        std::printf("\\n");
    }}
"""


@dataclass(frozen=True, eq=False)
class CircuitCase:
    """A circuit, the name that its code gets, raw rows, and the options of the export."""

    name: str
    circuit: Circuit
    values: np.ndarray
    options: dict = field(default_factory=dict)

    @property
    def plan(self) -> CircuitPlan:
        return make_circuit_plan(self.circuit, **self.options)

    @property
    def given(self) -> np.ndarray:
        return self.values.astype(np.float32 if self.plan.features.raw == "float" else np.int32)

    @property
    def codes(self) -> np.ndarray:
        """The codes of Python; -1 where the value is unknown, and for the query."""
        raw = np.where(self.values == -(2**31), np.nan, self.values) if self.plan.features.raw == "int" else self.values
        columns = [_codes(v, column) for v, column in zip(self.circuit.nodes, raw.T, strict=True)]
        codes = np.array(columns, dtype=np.int64).T
        codes[:, self.plan.query] = -1
        return codes


def _codes(variable, values):
    if isinstance(variable.encoding, Cuts | Grid):
        return variable.encoding.codes(values)
    known = np.isfinite(values) & (values == np.round(values))  # before a difference rounds a tiny fraction away
    values = np.where(known, values, -1.0).astype(float)
    values -= variable.encoding.low if isinstance(variable.encoding, Integers) else 0
    known &= (values >= 0) & (values < variable.cardinality)
    return np.where(known, np.nan_to_num(values), -1)


def _main(cases, block, header, begin, counters):
    out = begin + "".join(f'#include "{header.format(case.name)}"\n' for case in cases)
    if counters:
        out += "".join(f"static struct {case.name}_memory {case.name}_m;\n" for case in cases)
    out += f"int main(void)\n{{\n{counters}"
    for case in cases:
        plan = case.plan
        integer = plan.arithmetic == "integer"
        out += block.format(
            name=case.name,
            rows=len(case.values),
            n=len(plan.variables),
            states=plan.states,
            value=plan.features.value,
            state=plan.features.state,
            score=plan.numbers.score,
            print="%lu" if integer else "%.9g",
            cast="(unsigned long)" if integer else "(double)",
        )
    return out + "    return 0;\n}\n"


def _ran(directory, command, cases):
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = b"".join(case.given.tobytes() for case in cases)
    done = subprocess.run(["./main"], cwd=directory, input=rows, capture_output=True)
    assert done.returncode == 0, (done.returncode, done.stderr.decode())
    lines, found = iter(done.stdout.decode().splitlines()), []
    for case in cases:
        table = np.array([[float(word) for word in next(lines).split()] for _ in range(len(case.values))])
        states, features = case.plan.states, case.plan.features
        codes = table[:, 2 + states :].astype(int)
        codes = np.where(codes == features.missing, -1, codes) if features.gaps else codes
        found.append((table[:, 0].astype(int), table[:, 1].astype(bool), table[:, 2 : 2 + states], codes))
    return found


BEGIN = "#include <stdio.h>\n#include <string.h>\n"


def run_c(directory, cases):
    for case in cases:
        write_files(export(case.circuit, "c", name=case.name, **case.options), directory)
    (directory / "main.c").write_text(_main(cases, C_BLOCK, "{}.h", BEGIN, "    int r, c;\n"))
    flags = [*QUICK, *SANITIZERS, "-fsanitize=float-cast-overflow", "-Wshadow"]
    return _ran(directory, [compiler(), *flags, "main.c", *(f"{c.name}.c" for c in cases), "-o", "main"], cases)


def run_cpp(directory, cases):
    for case in cases:
        write_files(export(case.circuit, "cpp", name=case.name, **case.options), directory)
    (directory / "main.cpp").write_text(_main(cases, CPP_BLOCK, "{}.hpp", "#include <array>\n#include <cstdio>\n", ""))
    flags = [flag.replace("c99", "c++11") for flag in QUICK]
    return _ran(directory, ["g++", *flags, "-Wshadow", *SANITIZERS, "main.cpp", "-o", "main"], cases)


def run_arduino(directory, cases):
    for case in cases:
        unzipped(directory, export(case.circuit, "arduino", name=case.name, **case.options))
    (directory / "main.c").write_text(_main(cases, C_BLOCK, "{}.h", BEGIN, "    int r, c;\n"))
    flags = [flag.replace("c99", "gnu11") for flag in QUICK]
    places = [f"-I{case.name}/src" for case in cases]
    sources = [f"{case.name}/src/{case.name}.c" for case in cases]
    return _ran(directory, [compiler(), *flags, *places, "main.c", *sources, "-o", "main"], cases)


RUNNERS = {"c": run_c, "cpp": run_cpp, "arduino": run_arduino}
