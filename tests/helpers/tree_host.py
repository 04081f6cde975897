"""Runs rows through the C, C++ and Arduino code of many tree ensembles, in one build under sanitizers."""

import subprocess
from dataclasses import dataclass

import numpy as np

from c_host import FLAGS, SANITIZERS, compiler
from targets_host import unzipped
from tinybayes.deploy.export import export, write_files
from tinybayes.deploy.programs.plan import make_plan
from tinybayes.model import TreeEnsemble

BLOCK = """static int run_{name}(void)
{{
    static {row} v[{width}];
    static int32_t s[{classes}];
    int r, c;
    for (r = 0; r < {rows}; ++r) {{
        if (fread(v, sizeof v[0], {features}, stdin) != {features}) return 1;
        printf("%ld", (long){name}_{predict}(v));
        {encode}
        {name}_scores({given}, s);
        for (c = 0; c < {classes}; ++c) printf(" %ld", (long)s[c]);
        printf("\\n");
    }}
    return {selftest};
}}
"""
CPP_BLOCK = """static int run_{name}()
{{
    for (int r = 0; r < {rows}; ++r) {{
        std::array<{row}, {name}::features> v;
        if (std::fread(v.data(), sizeof v[0], v.size(), stdin) != v.size()) return 1;
        std::printf("%ld", static_cast<long>({name}::{predict}(v)));
        for ({name}::Score s : {name}::scores({given})) std::printf(" %ld", static_cast<long>(s));
        std::printf("\\n");
    }}
    return {name}::selftest();
}}
"""


@dataclass(frozen=True, eq=False)
class TreeCase:
    """An ensemble, the options of its export, rows as the program takes them, and their codes."""

    name: str
    model: TreeEnsemble
    given: np.ndarray
    codes: np.ndarray  # -1 where missing
    raw: str = "none"
    gaps: bool = True
    form: str | None = None
    extras: bool = False

    @property
    def plan(self):
        return make_plan(self.model, self.raw, gaps=self.gaps, form=self.form)

    def export(self, target):
        options = {"raw": self.raw, "gaps": self.gaps, "form": self.form, "extras": self.extras}
        return export(self.model, target, name=self.name, **options)


def run_trees(directory, cases, target="c"):
    """Return (labels, scores) of each case; "c", "cpp" or "arduino"."""
    cpp = target == "cpp"
    main = "#include <cstdio>\n#include <array>\n" if cpp else "#include <stdio.h>\n"
    main += "".join(f'#include "{case.name}.{"hpp" if cpp else "h"}"\n' for case in cases)
    main += "".join(_block(case, CPP_BLOCK if cpp else BLOCK) for case in cases)
    runs = "".join(f"    if (run_{case.name}()) return {i + 2};\n" for i, case in enumerate(cases))
    file = "main.cpp" if cpp else "main.c"
    (directory / file).write_text(f"{main}int main(void)\n{{\n{runs}    return 0;\n}}\n")
    for case in cases:
        if target == "arduino":
            unzipped(directory, case.export(target))
        else:
            write_files(case.export(target), directory)
    sources = (
        [] if cpp else [f"{case.name}/src/{case.name}.c" if target == "arduino" else f"{case.name}.c" for case in cases]
    )
    places = [f"-I{case.name}/src" for case in cases] if target == "arduino" else []
    flags = [flag.replace("c99", {"c": "c99", "cpp": "c++11", "arduino": "gnu11"}[target]) for flag in FLAGS]
    built = subprocess.run(
        ["g++" if cpp else compiler(), *flags, *SANITIZERS, "-O0", *places, file, *sources, "-o", "main"],
        cwd=directory,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr[:3000]
    rows = b"".join(np.ascontiguousarray(case.given).tobytes() for case in cases)
    done = subprocess.run(["./main"], cwd=directory, input=rows, capture_output=True)
    assert done.returncode == 0, (done.returncode, done.stderr.decode()[:3000])
    lines = iter(done.stdout.decode().splitlines())
    answers = []
    for case in cases:
        rows = np.array([[int(word) for word in next(lines).split()] for _ in range(len(case.given))])
        answers.append((rows[:, 0], rows[:, 1:]))
    return answers


def _block(case, block):
    plan, cpp = case.plan, block is CPP_BLOCK
    encode, given = "", "v"
    if plan.encodes:
        state = f"{plan.features.state} x[{max(1, len(plan.variables))}]; {case.name}_encode(v, x);"
        encode, given = ("", f"{case.name}::encode(v)") if cpp else (state, "x")
    return block.format(
        name=case.name,
        row=plan.features.value or plan.features.state,
        width=max(1, len(plan.variables)),
        features=len(plan.variables),
        classes=plan.classes,
        rows=len(case.given),
        predict="predict_raw" if plan.features.value else "predict",
        encode=encode,
        given=given,
        selftest=f"{case.name}_selftest()" if case.extras else "0",
    )
