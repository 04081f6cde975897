"""Runs raw rows through the C, C++ and Arduino code of many classifiers, in one build for each type of raw values."""

from dataclasses import dataclass

import numpy as np

import targets_host as host
from c_host import compiler
from tinybayes.deploy.export import export, write_files
from tinybayes.deploy.programs.plan import make_plan

C_BLOCK = """    for (r = 0; r < {rows}; ++r) {{
        VALUE v[{width}];
        {score} s[{classes}];
        if (fread(v, sizeof v[0], {features}, stdin) != {features}) return 1;
        printf("%ld", (long){name}_predict_raw(v));
        {encode}
        {name}_scores({given}, s);
        for (c = 0; c < {classes}; ++c) printf(" {print}", {cast}s[c]);
        printf("\\n");
    }}
"""

CPP_BLOCK = """    for (int r = 0; r < {rows}; ++r) {{
        std::array<{name}::Value, {name}::features> v;
        if (std::fread(v.data(), sizeof v[0], v.size(), stdin) != v.size()) return 1;
        std::printf("%ld", static_cast<long>({name}::predict_raw(v)));
        for ({name}::Score s : {name}::scores({given_cpp})) std::printf(" {print}", {cast}s);
        std::printf("\\n");
    }}
"""


@dataclass(frozen=True, eq=False)
class RawCase(host.Case):
    """A classifier with rows of raw values, float32 or int32, of which `X` are the codes."""

    values: np.ndarray = None

    @property
    def given(self) -> np.ndarray:
        """The rows that the program gets."""
        return self.values

    @property
    def reading(self) -> dict[str, str]:
        """How a row becomes what ``scores`` takes: codes, or the raw values where trees compare them as they are."""
        plan, name = make_plan(self.net, self.raw, gaps=True), self.name
        if not plan.encodes:
            return {"encode": "", "given": "v", "given_cpp": "v"}
        encode = f"{plan.features.state} x[{max(1, len(plan.variables))}]; {name}_encode(v, x);"
        return {"encode": encode, "given": "x", "given_cpp": f"{name}::encode(v)"}

    @property
    def raw(self) -> str:
        """The type of raw values, as `export` names it."""
        return "int" if self.values.dtype == np.int32 else "float"


def run_raw(target, directory, cases):
    """Return (labels, scores) of each case; "c", "cpp" or "arduino"."""
    found = {}
    for raw in ("float", "int"):
        folder, own = directory / raw, [case for case in cases if case.raw == raw]
        folder.mkdir()
        if own:
            found |= dict(zip(own, RUNNERS[target](folder, own, raw), strict=True))
    return [found[case] for case in cases]


def _c(directory, cases, raw, standard="c99", library=False):
    block = C_BLOCK.replace("VALUE", "float" if raw == "float" else "int32_t")
    (directory / "main.c").write_text(host.c_main(cases, block))
    for case in cases:
        if library:
            host.unzip(directory, case)
        else:
            write_files(export(case.net, "c", name=case.name, raw=raw), directory)
    flags = [flag.replace("c99", standard) for flag in host.QUICK]
    flags += [f"-I{case.name}/src" for case in cases] if library else []
    sources = [f"{case.name}/src/{case.name}.c" if library else f"{case.name}.c" for case in cases]
    return host._ran(directory, [compiler(), *flags, "main.c", *sources, "-o", "main"], cases)


def _arduino(directory, cases, raw):
    return _c(directory, cases, raw, "gnu11", library=True)


def _cpp(directory, cases, raw):
    for case in cases:
        write_files(export(case.net, "cpp", name=case.name, raw=raw), directory)
    begin = "#include <cstdio>\n#include <array>\n"
    (directory / "main.cpp").write_text(host.c_main(cases, CPP_BLOCK, "{}.hpp", begin, ""))
    flags = [flag.replace("c99", "c++11") for flag in host.QUICK]
    return host._ran(directory, ["g++", *flags, "main.cpp", "-o", "main"], cases)


RUNNERS = {"c": _c, "cpp": _cpp, "arduino": _arduino}
