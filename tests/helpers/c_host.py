"""Builds exported C with all warnings and sanitizers on this machine, and runs rows through it."""

import re
import shutil
import subprocess

import numpy as np
import pytest

from tinybayes.deploy.programs.plan import make_plan

FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wpedantic", "-Werror", "-O1", "-g"]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]

MAIN = """
#include <stdio.h>
#include "{name}.h"
int main(void)
{{
    {state} x[{width}];
    {score} s[{classes}];
    unsigned c;
    while (fread(x, sizeof x[0], {features}U, stdin) == {features}U) {{
        const long label = (long){name}_predict(x);
        {name}_scores(x, s);
        printf("%ld", label);
        for (c = 0; c < {classes}U; ++c) {{
            printf(" {print}", {cast}s[c]);
        }}
        printf("\\n");
    }}
    return 0;
}}
"""

RAW = """
#include <stdio.h>
#include "{name}.h"
int main(void)
{{
    {kind} v[{features}];
    {state} x[{features}];
    unsigned i;
    while (fread(v, sizeof v[0], {features}U, stdin) == {features}U) {{
        {name}_encode(v, x);
        printf("%ld", (long){name}_predict_raw(v));
        for (i = 0; i < {features}U; ++i) {{
            printf(" %ld", (long)x[i]);
        }}
        printf("\\n");
    }}
    return 0;
}}
"""


def compiler() -> str:
    found = shutil.which("gcc")
    if found is None:
        pytest.skip("no gcc on this machine")
    return found


def state_type(net) -> type:
    """Return the type of a code; a missing one is a code, too, where the program handles gaps."""
    return getattr(np, make_plan(net, gaps=True).features.state.removesuffix("_t"))


def declared_type(texts, name):
    """Return the type of a code, as the header has it."""
    return getattr(np, re.search(rf"{name}_predict\(const (\w+)_t x\[", texts[f"{name}.h"])[1])


def build(directory, texts, main: str):
    """Write the files and a main program, and compile them."""
    for file, content in {**texts, "main.c": main}.items():
        (directory / file).write_text(content)
    sources = [file for file in texts if file.endswith(".c")] + ["main.c"]
    command = [compiler(), *FLAGS, *SANITIZERS, *sources, "-o", "main"]
    found = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    return directory / "main"


def labels_and_scores(directory, texts, name, net, X, *, score="int32_t"):
    """Return what the compiled code says of rows of codes."""
    state = declared_type(texts, name)
    whole = score == "int32_t"
    main = MAIN.format(
        name=name,
        state=f"{state.__name__}_t",
        width=max(1, len(net.variables)),
        features=len(net.variables),
        classes=net.target.cardinality,
        score=score,
        print="%ld" if whole else "%.9g",
        cast="(long)" if whole else "(double)",
    )
    program = build(directory, texts, main)
    found = subprocess.run([program], input=X.astype(state).tobytes(), capture_output=True)
    assert found.returncode == 0, found.stderr.decode()
    rows = [line.split() for line in found.stdout.decode().splitlines()]
    labels = np.array([int(row[0]) for row in rows])
    kind = np.int64 if whole else np.float64
    return labels, np.array([[float(v) if not whole else int(v) for v in row[1:]] for row in rows], dtype=kind)


def labels_and_codes(directory, texts, name, net, values, kind):
    """Return what the compiled code makes of raw values."""
    state = declared_type(texts, name)
    main = RAW.format(name=name, kind=kind, state=f"{state.__name__}_t", features=len(net.variables))
    program = build(directory, texts, main)
    raw = values.astype(np.float32 if kind == "float" else np.int32).tobytes()
    found = subprocess.run([program], input=raw, capture_output=True)
    assert found.returncode == 0, found.stderr.decode()
    rows = np.array([[int(v) for v in line.split()] for line in found.stdout.decode().splitlines()])
    return rows[:, 0], rows[:, 1:]
