"""Give a million hostile raw rows to each of 66 exported classifiers, under sanitizers, and compare with Python.

    python tests/fuzz/raw_rows.py --rows 1000000 --processes 2 -o tests/fuzz/results.json

Rows hold any bits: NaNs of all payloads, infinities, denormals, neighbours of all cut points, integers of 32 bits. Each
must get the codes, scores and label of Python; functions of codes also get codes that are no states, and must give the
scores, label, margin and probabilities of Python. Rows and codes lie in memory of exactly their size, so that a
sanitizer sees a read beyond them. A finding is reproduced by its seed, program and number: `--program 7 --first 3
--rows 100000` repeats the fourth part of program 7.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "helpers")]

from raw_programs import Program, programs  # noqa: E402
from run import machine, read_results, say, write_results  # noqa: E402

from c_host import FLAGS  # noqa: E402
from raw_values import expected_codes, float_rows, int_rows, numbers_of  # noqa: E402
from tinybayes.deploy.programs.c import to_c  # noqa: E402
from tinybayes.deploy.programs.plan import TablePlan, make_plan  # noqa: E402
from tinybayes.deploy.programs.tree_plan import TreePlan  # noqa: E402
from tinybayes.infer import class_scores  # noqa: E402
from tinybayes.infer.fixed_probabilities import fixed_probabilities, make_scale, score_margins  # noqa: E402
from tinybayes.infer.integers import integer_log_joint  # noqa: E402
from tinybayes.infer.neural_net import net_scores  # noqa: E402
from tinybayes.infer.trees import tree_scores  # noqa: E402

PART = 100_000  # rows of a run of a program
SANITIZERS = {
    "gcc": ["-fsanitize=address,undefined,float-cast-overflow,float-divide-by-zero,bounds-strict"],
    "clang": [
        "-fsanitize=address,undefined,float-cast-overflow,float-divide-by-zero,local-bounds,implicit-conversion",
    ],
}
MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include "p.h"
int main(int argc, char **argv)
{{
    {value} *v = malloc({features} * sizeof *v);
    {state} *x = malloc({features} * sizeof *x);
    {score} *s = malloc({classes} * sizeof *s);
    uint16_t *q = malloc({classes} * sizeof *q);
    {score} margin;
    int32_t label;
    (void)argv;
    if (p_selftest()) {{
        fputs("the self-test fails", stderr);
        exit(3);
    }}
    if (argc > 1) {{ /* rows that scores are made of: codes, or raw values where there is no encoder */
        while (fread(x, sizeof *x, {features}, stdin) == {features}) {{
            label = (int32_t)p_{predict}(x);
            p_scores(x, s);
            p_probabilities(x, q);
            margin = p_score_margin(x);
            fwrite(&label, sizeof label, 1, stdout);
            fwrite(s, sizeof *s, {classes}, stdout);
            fwrite(q, sizeof *q, {classes}, stdout);
            fwrite(&margin, sizeof margin, 1, stdout);
        }}
    }} else {{
        while (fread(v, sizeof *v, {features}, stdin) == {features}) {{
            label = (int32_t)p_predict_raw(v);
            if ((int32_t)p_predict_or(v, 0, 0) != label) {{
                fputs("predict_or says another label", stderr); /* no margin is below zero */
                exit(4);
            }}
            {encode}
            p_scores({given}, s);
            fwrite(&label, sizeof label, 1, stdout);
            fwrite({given}, sizeof *{given}, {features}, stdout);
            fwrite(s, sizeof *s, {classes}, stdout);
        }}
    }}
    free(v);
    free(x);
    free(s);
    free(q);
    return 0;
}}
"""


class ReportError(Exception):
    """What the compiler or a sanitizer said."""


@dataclass
class Built:
    """A program that was compiled, with what Python needs to know about it."""

    program: Program
    plan: Any
    path: Path

    @property
    def state(self) -> np.dtype[Any]:
        """The type of what scores are made of."""
        return np.dtype({"float": "f4"}.get(self.plan.row, self.plan.row.removesuffix("_t")))

    @property
    def score(self) -> str:
        return "f4" if self.plan.score == "float" else "i4"

    def run(self, rows: np.ndarray, *, codes: bool) -> np.ndarray:
        """Return labels, codes and scores of rows, or of rows of codes."""
        fields: list[Any] = [("label", "i4"), ("scores", self.score, (self.plan.classes,))]
        if codes:
            fields += [("probabilities", "u2", (self.plan.classes,)), ("margin", self.score)]
        else:
            fields.insert(1, ("codes", self.state, rows.shape[1:]))
        done = subprocess.run([self.path, *(["codes"] if codes else [])], input=rows.tobytes(), capture_output=True)
        if done.returncode:
            raise ReportError(f"exit code {done.returncode}: {done.stderr.decode(errors='replace')[:2000]}")
        found = np.frombuffer(done.stdout, dtype=fields)
        if len(found) != len(rows):
            raise ReportError(f"answers to {len(found):,} of {len(rows):,} rows")
        return found


def build(program: Program, directory: Path, compiler: str = "gcc", files: dict[str, str] | None = None) -> Built:
    """Compile a program with sanitizers, or the given files in its place."""
    plan = make_plan(program.net, program.raw, gaps=program.gaps, form=program.form)
    sizes = {"features": len(plan.variables), "classes": plan.classes, "state": plan.row}
    calls = {"predict": plan.predict_name, "encode": "p_encode(v, x);" if plan.encodes else ""}
    calls["given"] = "x" if plan.encodes else "v"
    main = MAIN.format(**sizes, **calls, value=plan.features.value, score=plan.score)
    files = files or to_c(program.net, name="p", raw=program.raw, gaps=program.gaps, form=program.form)
    for name, text in {**files, "main.c": main}.items():
        (directory / name).write_text(text)
    command = [compiler, *FLAGS, *SANITIZERS[compiler], "-fno-sanitize-recover=all", "p.c", "main.c", "-o", "main"]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    if done.returncode:
        raise ReportError(f"{compiler}: {done.stderr[:2000]}")
    return Built(program, plan, directory / "main")


def exact_scores(built: Built, codes: np.ndarray) -> np.ndarray:
    """Return the scores of Python; -1 is a missing value."""
    net, plan, codes = built.program.net, built.plan, codes.astype(np.int32)
    if isinstance(plan, TreePlan):
        return tree_scores(plan.net, codes)
    if not isinstance(plan, TablePlan):
        return net_scores(net, codes)
    if plan.values is not None:
        return integer_log_joint(net, codes, gaps=plan.features.gaps)[0]
    return class_scores(net, codes)


def wrong_answers(built: Built, codes: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Tell which rows have another score or label than Python's: to the bit, of floats within the stated bound."""
    exact, scores, labels = exact_scores(built, codes), found["scores"], found["label"]
    if built.score == "i4":
        return (scores != exact).any(axis=1) | (labels != exact.argmax(axis=1))
    bound = built.plan.gap_error if built.plan.features.gaps else built.plan.float_error
    with np.errstate(invalid="ignore"):
        same = (np.abs(scores - exact) <= bound) | (np.isneginf(exact) & np.isneginf(scores))
    valid = (labels >= 0) & (labels < built.plan.classes)
    taken = np.take_along_axis(exact, np.where(valid, labels, 0)[:, None], axis=1)[:, 0]
    near = (taken >= exact.max(axis=1) - 2 * bound) & valid  # another label only where scores are that close
    return ~same.all(axis=1) | ~near


def try_raw(built: Built, rng: np.random.Generator, rows: int) -> Counter[str]:
    """Give raw rows to a program; count rows, missing values and mismatches."""
    variables, features = built.plan.variables, built.plan.features
    values = (float_rows if features.raw == "float" else int_rows)(variables, rng, rows)
    found = built.run(values, codes=False)
    wanted = expected_codes(variables, numbers_of(values))
    missing = wanted < 0
    codes = wanted if built.plan.takes_raw else found["codes"].astype(np.int64)
    if built.plan.takes_raw:  # the scores of rows with missing values are any, unless they are known
        wrong = np.zeros(rows, dtype=bool)
    elif features.gaps:
        codes = np.where(codes == features.missing, -1, codes)
        wrong = (codes != wanted).any(axis=1)
    else:  # a missing value gets any state
        wrong = ((codes != wanted) & ~missing).any(axis=1)
        wrong |= (codes >= [v.cardinality for v in variables]).any(axis=1)
    if not wrong.any():
        wrong = wrong_answers(built, codes, found)
        if built.plan.takes_raw and not features.gaps:
            wrong &= ~missing.any(axis=1)
    count = Counter(rows=rows, entries=values.size, missing=int(missing.sum()), mismatches=int(wrong.sum()))
    return count + Counter(complete=int((~missing.any(axis=1)).sum()))


def try_codes(built: Built, rng: np.random.Generator, rows: int) -> Counter[str]:
    """Give rows of codes to a program: any bits where it takes missing values, else states."""
    if built.plan.takes_raw:
        return Counter()
    features, largest = built.plan.features, int(np.iinfo(built.state).max)
    states = [v.cardinality for v in features.variables]
    given = np.array([rng.integers(0, k, rows) for k in states]).T
    if features.gaps:
        any_bits = rng.integers(0, largest, given.shape, endpoint=True)
        any_bits = np.where(rng.random(given.shape) < 0.5, any_bits, np.minimum(states, largest))
        given = np.where(rng.random(given.shape) < 0.3, any_bits, given)
    found = built.run(np.ascontiguousarray(given, dtype=built.state), codes=True)
    wrong = wrong_answers(built, np.where(given < states, given, -1), found)
    scale = make_scale(built.plan.nats)
    wrong |= (found["probabilities"] != fixed_probabilities(found["scores"], scale)).any(axis=1)
    wrong |= found["margin"] != score_margins(found["scores"])
    return Counter(code_rows=rows, mismatches=int(wrong.sum()))


def try_program(built: Built, seed: int, number: int, rows: int, *, first: int = 0) -> Counter[str]:
    """Give so many raw rows to a program, and a quarter as many rows of codes, in parts."""
    total: Counter[str] = Counter()
    for part in range(first, first + -(-rows // PART)):
        rng, size = np.random.default_rng([seed, number, part]), min(PART, rows - (part - first) * PART)
        found = try_raw(built, rng, size) + try_codes(built, rng, max(1, size // 4))
        total += found
        if found["mismatches"]:
            say(f"program {number}, part {part}: {found['mismatches']} mismatches")
    return total


def try_number(options: argparse.Namespace, number: int) -> tuple[Counter[str], bool, str]:
    """Build and try a program; return what was counted, whether it takes missing values, and what was reported."""
    start, program = time.monotonic(), list(programs())[number]
    with tempfile.TemporaryDirectory() as place:
        try:
            built = build(program, Path(place), options.compiler)
            count = try_program(built, options.seed, number, options.rows, first=options.first)
        except ReportError as report:
            say(f"program {number}: {report}")
            return Counter(), False, str(report)
    say(f"{number:3} {program.name}: {count['mismatches']} mismatches, {time.monotonic() - start:.1f} s")
    return count, built.plan.features.gaps, ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000, help="raw rows of each program")
    parser.add_argument("--first", type=int, default=0, help="the number of the first part of the rows")
    parser.add_argument("--program", type=int, action="append", help="only this one; may be repeated")
    parser.add_argument("--processes", type=int, default=1, help="programs that are tried at a time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compiler", choices=list(SANITIZERS), default="gcc")
    parser.add_argument("-o", "--output", type=Path, help="the JSON file of run.py")
    options = parser.parse_args()
    began, total, said, gaps = time.monotonic(), Counter[str](), 0, 0
    chosen = options.program or range(len(list(programs())))
    with ProcessPoolExecutor(options.processes, get_context("spawn")) as pool:
        for count, takes_gaps, report in pool.map(partial(try_number, options), chosen):
            total += count
            gaps += takes_gaps
            said += bool(report)
    seconds = round(time.monotonic() - began, 1)
    say(f"{len(chosen)} programs, {dict(total)}, {said} reports, {seconds} s")
    if options.output:
        version = subprocess.run([options.compiler, "--version"], capture_output=True, text=True).stdout.splitlines()[0]
        results = read_results(options.output)
        results.setdefault("raw_rows", {})[options.compiler] = {
            "programs": len(chosen),
            "programs_with_gaps": gaps,
            "rows_of_each": options.rows,
            "compared": "codes, labels, scores, margins and probabilities",
            **{key: total[key] for key in ("rows", "complete", "entries", "missing", "code_rows", "mismatches")},
            "reports": said,
            "seed": options.seed,
            "seconds": seconds,
            "compiler": version,
            "flags": " ".join([*SANITIZERS[options.compiler], "-fno-sanitize-recover=all"]),
            "machine": machine(),
        }
        write_results(options.output, results)
    return 1 if total["mismatches"] or said else 0


if __name__ == "__main__":
    if shutil.which("gcc") is None:
        sys.exit("no gcc on this machine")
    sys.exit(main())
