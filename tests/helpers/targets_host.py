"""Runs rows through the code of every target on this machine; many classifiers in one build, since builds are slow."""

import io
import re
import shutil
import subprocess
import zipfile
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

from c_host import FLAGS, compiler, state_type
from javascript_host import run_javascript as run_node
from tinybayes.deploy.export import export, write_files
from tinybayes.deploy.programs.plan import make_plan
from tinybayes.infer.integers import integer_log_joint
from tinybayes.infer.neural_net import net_scores
from tinybayes.infer.trees import tree_scores
from tinybayes.model import BayesNet, NeuralNet, TreeEnsemble

QUICK = ["-O0" if flag == "-O1" else flag for flag in FLAGS if flag != "-g"]


@dataclass(frozen=True, eq=False)
class Case:
    """A classifier, the name that its code gets, and rows of codes."""

    name: str
    net: BayesNet | NeuralNet | TreeEnsemble
    X: np.ndarray
    codes: np.ndarray | None = None  # what the program gets, if it is not the type's own code for -1
    form: str | None = None  # of the code of trees and of neural nets, in C, C++ and Arduino

    @property
    def given(self) -> np.ndarray:
        """The rows in the type of the program; -1 becomes the missing code."""
        return (self.X if self.codes is None else self.codes).astype(state_type(self.net))

    @property
    def reading(self) -> dict[str, str]:
        """More blanks of the program that reads the rows."""
        return {}

    @property
    def whole(self) -> bool:
        """Whether scores are integers."""
        return isinstance(self.net, NeuralNet | TreeEnsemble) or make_plan(self.net).values is not None

    @property
    def gaps(self) -> bool:
        """Whether programs for this model take rows with missing values."""
        return make_plan(self.net, gaps=True).features.gaps

    @property
    def exact(self) -> np.ndarray:
        """The integer scores of Python, in the unit of programs that take missing values where they can."""
        if isinstance(self.net, NeuralNet):
            return net_scores(self.net, self.X)
        if isinstance(self.net, TreeEnsemble):
            return tree_scores(self.net, self.X)
        return integer_log_joint(self.net, self.X, gaps=self.gaps)[0]

    @property
    def complete(self) -> np.ndarray:
        """The integer scores of a Bayesian network in Python, in the unit of programs that take complete rows only."""
        return integer_log_joint(self.net, self.X)[0]


C_BLOCK = """    for (r = 0; r < {rows}; ++r) {{
        {state} x[{width}];
        {score} s[{classes}];
        if (fread(x, sizeof x[0], {features}, stdin) != {features}) return 1;
        printf("%ld", (long){name}_predict(x));
        {name}_scores(x, s);
        for (c = 0; c < {classes}; ++c) printf(" {print}", {cast}s[c]);
        printf("\\n");
    }}
"""

CPP_BLOCK = """    for (int r = 0; r < {rows}; ++r) {{
        std::array<{name}::State, {name}::features> x;
        if (std::fread(x.data(), sizeof x[0], x.size(), stdin) != x.size()) return 1;
        std::printf("%ld", static_cast<long>({name}::predict(x)));
        for ({name}::Score s : {name}::scores(x)) std::printf(" {print}", {cast}s);
        std::printf("\\n");
    }}
"""


def c_main(cases, block=C_BLOCK, header="{}.h", begin="#include <stdio.h>\n", counters="    int r, c;\n"):
    """Write a program that answers the rows of all cases one after another."""
    out = begin + "".join(f'#include "{header.format(case.name)}"\n' for case in cases)
    out += f"int main(void)\n{{\n{counters}"
    for case in cases:
        out += block.format(
            name=case.name,
            rows=len(case.X),
            features=case.X.shape[1],
            width=max(1, case.X.shape[1]),
            classes=case.net.target.cardinality,
            state=f"{state_type(case.net).__name__}_t",
            score="int32_t" if case.whole else "float",
            print="%ld" if case.whole else "%.9g",
            cast="(long)" if case.whole else "(double)",
            **case.reading,
        )
    return out + "    return 0;\n}\n"


def read_answers(cases, lines):
    """Return (labels, scores) of each case from lines of numbers."""
    found, lines = [], iter(lines)
    for case in cases:
        rows = [next(lines).split() for _ in range(len(case.X))]
        kind = int if case.whole else float
        scores = np.array([[kind(word) for word in row[1:]] for row in rows])
        found.append((np.array([int(row[0]) for row in rows]), scores))
    assert next(lines, None) is None
    return found


def _ran(directory, command, cases):
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = b"".join(case.given.tobytes() for case in cases)
    done = subprocess.run(["./main"], cwd=directory, input=rows, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return read_answers(cases, done.stdout.decode().splitlines())


def run_c(directory, cases, flags=()):
    for case in cases:
        write_files(export(case.net, "c", name=case.name, extras=False, form=case.form), directory)
    (directory / "main.c").write_text(c_main(cases))
    command = [compiler(), *QUICK, *flags, "main.c", *(f"{case.name}.c" for case in cases), "-o", "main"]
    return _ran(directory, command, cases)


def run_cpp(directory, cases):
    if shutil.which("g++") is None:
        pytest.skip("no g++ on this machine")
    for case in cases:
        write_files(export(case.net, "cpp", name=case.name, extras=False, form=case.form), directory)
    begin = "#include <cstdio>\n#include <array>\n"
    (directory / "main.cpp").write_text(c_main(cases, CPP_BLOCK, "{}.hpp", begin, ""))
    flags = [flag.replace("c99", "c++11") for flag in QUICK]
    return _ran(directory, ["g++", *flags, "-Wshadow", "main.cpp", "-o", "main"], cases)


def unzip(directory, case):
    """Lay out the library of a case as the Arduino IDE does, and return its folder."""
    unzipped(directory, export(case.net, "arduino", name=case.name, form=case.form))
    return directory / case.name


def unzipped(directory, files):
    """Unpack an exported library."""
    (content,) = files.values()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        archive.extractall(directory)


def run_arduino(directory, cases):
    for case in cases:
        unzip(directory, case)
    (directory / "main.c").write_text(c_main(cases))
    flags = [flag.replace("c99", "gnu11") for flag in QUICK]
    places = [f"-I{case.name}/src" for case in cases]
    sources = [f"{case.name}/src/{case.name}.c" for case in cases]
    return _ran(directory, [compiler(), *flags, *places, "main.c", *sources, "-o", "main"], cases)


def run_micropython(directory, cases):
    """Run the modules under CPython."""
    found = []
    for case in cases:
        names = {}
        exec(export(case.net, "micropython", name=case.name)[f"{case.name}.py"], names)
        rows = case.X.tolist()
        found.append((np.array([names["predict"](x) for x in rows]), np.array([names["scores"](x) for x in rows])))
    return found


def run_javascript(directory, cases):
    """Run the modules under Node.js."""
    found = []
    for case in cases:
        text = export(case.net, "javascript")["model.js"]
        labels, scores = (run_node(text, case.X, call) for call in ("predict", "scores"))
        found.append((np.array(labels), np.array(scores, dtype=np.int64 if case.whole else np.float64)))
    return found


def run_onnx(directory, cases):
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    pytest.importorskip("onnx", reason="onnx is not installed")
    found = []
    for case in cases:
        session = runtime.InferenceSession(export(case.net, "onnx", name=case.name)[f"{case.name}.onnx"])
        label, scores = session.run(["label", "scores"], {"x": case.X.astype(np.int64)})
        assert scores.dtype == (np.int32 if case.whole else np.float32)
        found.append((label, scores.astype(np.int64 if case.whole else np.float64)))
    return found


# A new row with every clock; the answers come later by the number of clocks that the module tells.
DRIVER = """module drive_{name};
    reg clk;
    reg [{x}:0] x, row [0:{rows} - 1];
    wire [{label}:0] label;
    wire [{scores}:0] scores;
    integer i;
    {name} device ({clock}.x(x), .label(label), .scores(scores));
    initial begin
        $readmemh("{name}.hex", row);
        for (i = 0; i < {rows} + {wait}; i = i + 1) begin
            x = row[i % {rows}];
            clk = 0;
            #1 clk = 1;
            #1 if (i >= {wait}) $display("{name} %0d %h", label, scores);
        end
    end
endmodule
"""


def simulate(directory, *files):
    """Return what a simulation prints; all modules that no other one contains run side by side."""
    if shutil.which("iverilog") is None:
        pytest.skip("no iverilog on this machine")
    command = ["iverilog", "-g2001", "-Wall", "-Wno-timescale", "-o", "simulation", *files]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return subprocess.run(["vvp", "simulation"], cwd=directory, capture_output=True, text=True, check=True).stdout


def run_verilog(directory, cases, target="verilog"):
    files, lanes = [], {}
    for case in cases:
        write_files(export(case.net, target, name=case.name), directory)
        text = (directory / f"{case.name}.v").read_text()
        low = [int(v) for v in re.findall(r"^//   x\[\d+:(\d+)\]", text, flags=re.MULTILINE)]
        x, label, scores = (int(v) for v in re.findall(r"wire \[(\d+):0\] (?:x|label|scores)\b", text))
        lanes[case.name] = (scores + 1) // case.net.target.cardinality
        packed = [sum(v << at for v, at in zip(row, low, strict=True)) for row in case.X.tolist()]
        (directory / f"{case.name}.hex").write_text("".join(f"{v:x}\n" for v in packed))
        clocks = re.search(r"its answer is there after (\d+) clocks", text)
        driver = DRIVER.format(
            name=case.name,
            x=x,
            label=label,
            scores=scores,
            rows=len(case.X),
            clock=".clk(clk), " if clocks else "",
            wait=int(clocks[1]) - 1 if clocks else 0,
        )
        (directory / f"drive_{case.name}.v").write_text(driver)
        files += [f"{case.name}.v", f"drive_{case.name}.v"]
    lines = [line.split() for line in simulate(directory, *files).splitlines()]
    found = []
    for case in cases:
        mine = [line[1:] for line in lines if line[0] == case.name]
        classes = range(case.net.target.cardinality)
        scores = [[_signed(int(word, 16), c, lanes[case.name]) for c in classes] for _, word in mine]
        found.append((np.array([int(label) for label, _ in mine]), np.array(scores)))
    return found


def _signed(word, lane, bits):
    value = word >> lane * bits & 2**bits - 1
    return value - 2**bits if value >> bits - 1 else value


RUNNERS = {
    "c": run_c,
    "cpp": run_cpp,
    "arduino": run_arduino,
    "micropython": run_micropython,
    "javascript": run_javascript,
    "onnx": run_onnx,
    "verilog": run_verilog,
    "verilog-pipelined": partial(run_verilog, target="verilog-pipelined"),
}
