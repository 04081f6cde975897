"""The size and speed of exported C on microcontrollers: built for real cores, run on emulated ones.

Instructions are counted by the clock of the emulator: with ``-icount shift=0`` an instruction takes one nanosecond,
so the timer of the core counts instructions. A block of rows is timed through the prediction and through an empty
function, and a test with a known sequence checks the count. Flash is what the linker keeps if only the measured
function is called: `predict_raw` for rows of raw values, `predict` for rows of codes.
"""

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tinybayes.deploy._boards.boards import Board, build, emulate, find_board, need_tools, weigh
from tinybayes.deploy._boards.monitor import START, Probe, program, repeats
from tinybayes.errors import error

LEVELS = ("0", "1", "2", "3", "s")
ELEMENTS = {f"{kind}int{8 * n}_t": f"<{kind[:1] or 'i'}{n}" for kind in ("u", "") for n in (1, 2, 4)}
ELEMENTS |= {"float": "<f4", "double": "<f8"}  # the C types of rows and scores
AROUND_RAW = """#include "measured.h"
#include "{name}.h"
{label} measured_call(const {value} *value)
{{
    return {name}_predict_raw(value);
}}
void measured_scores(const {value} *value, {score} *scores)
{{
    {state} x[{width}];
    {name}_encode(value, x);
    {name}_scores(x, scores);
}}
"""
AROUND_CIRCUIT = """#include "measured.h"
#include "{name}.h"
static struct {name}_memory memory;
{label} measured_call(const {element} *row)
{{
    return {name}_predict{raw}(row, &memory);
}}
void measured_scores(const {element} *row, {score} *scores)
{{
    (void){name}_posterior{raw}(row, &memory, scores);
}}
"""
AROUND_DENSITY = """#include "measured.h"
#include "{name}.h"
static struct {name}_memory memory;
uint32_t measured_call(const {element} *row)
{{
    return (uint32_t){name}_{function}{raw}(row, &memory);
}}
void measured_scores(const {element} *row, int32_t *scores)
{{
    scores[0] = {name}_log_likelihood{raw}(row, &memory);
}}
"""
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wpedantic", "-Werror")


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurement:
    """The cost of a prediction on one core, and its answers."""

    core: str  # name of the core
    flash: int  # bytes of code and constants that a prediction adds to a program, the compiler's helpers included
    ram: int  # bytes of static variables that it adds
    stack: int  # the most bytes of stack that it used for any of the rows, down to the deepest byte written
    instructions: float  # from the first one of the function to its return, averaged over the rows
    labels: np.ndarray  # of all rows
    scores: np.ndarray  # of all rows and classes


def measure(
    texts: Mapping[str, str],
    name: str,
    rows: np.ndarray,
    *,
    raw: bool = False,
    boards: Sequence[str] = ("m0+", "m4"),
    optimize: str = "s",
    timeout: float = 120.0,
    repeat: int | None = None,
) -> list[Measurement]:
    """Build exported C for some cores, run rows through it on emulated boards, and measure.

    The scores of a circuit are its posteriors. Its memory is a static variable of the program. The score of a density
    is its log-likelihood; its label is the alarm, or without one the log-likelihood as an unsigned integer.

    Parameters
    ----------
    texts, name
        The result of ``export(model, to="c", name=name)``, and the name.
    rows
        Rows of codes; those of a circuit have a column for every variable, the code for unknown where it is not known.
        The column of the variable that is asked for is ignored.
    raw
        Whether the rows hold raw values; then ``predict_raw`` is measured.
    boards
        Some of ``"m0+"``, ``"m3"``, ``"m4"``, ``"m7"``.
    optimize
        The compiler's level of optimisation: ``"s"`` for size, or ``"0"`` to ``"3"``.
    timeout
        Seconds that one run may take.
    repeat
        How often the rows are timed; by default so often that a tick of the timer does not matter for programs of a
        few instructions.
    """
    if f"struct {name}_memory" in texts.get(f"{name}.h", ""):
        probed = _density_probe if f"{name}_log_likelihood(" in texts[f"{name}.h"] else _circuit_probe
        files, probe = probed(texts, name, raw=raw)
    else:
        files, probe = _raw_probe(texts, name) if raw else _probe(texts, name)
    return [
        measure_program(
            files, probe, rows, find_board(b), optimize=optimize, flags=STRICT, timeout=timeout, repeat=repeat
        )
        for b in boards
    ]


def _circuit_probe(texts: Mapping[str, str], name: str, *, raw: bool) -> tuple[Mapping[str, str], Probe]:
    """Read from the header how a circuit is called; functions around it keep its memory."""
    ending = "_raw" if raw else ""
    inputs = rf"\(const (\w+) \w+\[(\d+)\], struct {name}_memory \*memory"
    declared = re.search(rf"(\w+) {name}_predict{ending}{inputs}\);", texts[f"{name}.h"])
    scores = re.search(rf"{name}_posterior{ending}{inputs}, (\w+) result\[(\d+)\]\);", texts[f"{name}.h"])
    if declared is None or scores is None:
        raise error("a program that takes raw values", "none", where="measure", remedy="leave --raw none out")
    label, element, width = declared.groups()
    score, states = scores.groups()[2:]
    around = AROUND_CIRCUIT.format(name=name, label=label, element=element, score=score, raw=ending)
    own = f"#include <stdint.h>\n{label} measured_call(const {element} *row);\n"
    own += f"void measured_scores(const {element} *row, {score} *scores);\n"
    call = Probe("measured.h", "measured_call", element, int(width), label, "measured_scores", score, int(states))
    return {**texts, "measured.h": own, "measured.c": around}, call


def _density_probe(texts: Mapping[str, str], name: str, *, raw: bool) -> tuple[Mapping[str, str], Probe]:
    """Read from the header how a density is called; functions around it keep its memory."""
    ending, header = "_raw" if raw else "", texts[f"{name}.h"]
    declared = re.search(rf"{name}_log_likelihood{ending}\(const (\w+) \w+\[(\d+)\], struct", header)
    if declared is None:
        raise error("a program that takes raw values", "none", where="measure", remedy="leave --raw none out")
    element, width = declared.groups()
    function = "alarm" if f"{name}_alarm(" in header else "log_likelihood"
    around = AROUND_DENSITY.format(name=name, element=element, function=function, raw=ending)
    own = f"#include <stdint.h>\nuint32_t measured_call(const {element} *row);\n"
    own += f"void measured_scores(const {element} *row, int32_t *scores);\n"
    call = Probe("measured.h", "measured_call", element, int(width), "uint32_t", "measured_scores", "int32_t", 1)
    return {**texts, "measured.h": own, "measured.c": around}, call


def _raw_probe(texts: Mapping[str, str], name: str) -> tuple[Mapping[str, str], Probe]:
    """Read from the header how a classifier takes raw values; a function around it encodes them for the scores.

    Programs that compare raw values as they are have scores of raw values, too.
    """
    declared = re.search(rf"(\w+) {name}_predict_raw\(const (\w+) value\[(\d+)\]\);", texts.get(f"{name}.h", ""))
    if declared is None:
        raise error("a program that takes raw values", "none", where="measure", remedy="leave --raw none out")
    label, value, width = declared.groups()
    scores = re.search(rf"{name}_scores\(const {value} value\[\d+\], (\w+) scores\[(\d+)\]\);", texts[f"{name}.h"])
    if scores is not None:
        functions = f"{name}_predict_raw", f"{name}_scores"
        kinds = value, int(width), label
        return texts, Probe(f"{name}.h", functions[0], *kinds, functions[1], scores[1], int(scores[2]))
    _, coded = _probe(texts, name)
    types = {"name": name, "label": label, "value": value, "width": width}
    around = AROUND_RAW.format(**types, state=coded.element, score=coded.score)
    own = f"#include <stdint.h>\n{label} measured_call(const {value} *value);\n"
    own += f"void measured_scores(const {value} *value, {coded.score} *scores);\n"
    call = Probe("measured.h", "measured_call", value, int(width), label, "measured_scores", coded.score, coded.classes)
    return {**texts, "measured.h": own, "measured.c": around}, call


def _probe(texts: Mapping[str, str], name: str) -> tuple[Mapping[str, str], Probe]:
    """Read from the header how a classifier takes codes."""
    header = texts.get(f"{name}.h", "")
    declared = re.search(rf"(\w+) {name}_predict\(const (\w+) x\[(\d+)\]\);", header)
    scores = re.search(rf"{name}_scores\(const \w+ x\[\d+\], (\w+) scores\[(\d+)\]\);", header)
    if declared is None or scores is None:
        raise error(f"the files of export(..., to='c', name={name!r})", ", ".join(texts) or "none", where="measure")
    label, element, width = declared.groups()
    functions = f"{name}_predict", f"{name}_scores"
    return texts, Probe(f"{name}.h", functions[0], element, int(width), label, functions[1], scores[1], int(scores[2]))


def measure_program(
    files: Mapping[str, str],
    probe: Probe,
    rows: np.ndarray,
    board: Board,
    *,
    optimize: str = "s",
    flags: Sequence[str] = (),
    timeout: float = 120.0,
    repeat: int | None = None,
) -> Measurement:
    """Measure any C code that maps a row to a label; `files` holds its sources and headers."""
    need_tools()
    if optimize not in LEVELS:
        raise error(f"one of {', '.join(LEVELS)}", repr(optimize), where="optimize")
    rows = _as_elements(rows, probe)
    flags = (f"-O{optimize}", *flags)
    repeat = repeats(len(rows), rows.strides[0]) if repeat is None else repeat
    floats = any("hard" in flag for flag in board.flags)
    around = {"start.S": START, "monitor.c": program(probe, rows.strides[0], repeat, floats=floats)}
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        flash, ram = weigh(directory, files, board, flags, probe.call)
        image = build(directory, {**files, **around}, board, flags)
        (directory / "rows.bin").write_bytes(rows.tobytes())
        emulate(image, board, timeout)
        figures = np.frombuffer((directory / "figures.bin").read_bytes(), dtype="<u4")
        answers = (directory / "answers.bin").read_bytes()
    ticks = figures[2:].view("<u8").astype(np.float64)
    took = (ticks[0] - ticks[1]) * (1e9 / board.hertz) / (len(rows) * repeat) + 1  # the empty call returned, too
    width = probe.classes if probe.scores else 0
    answered = np.frombuffer(answers, [("label", "<u4"), ("scores", ELEMENTS[probe.score], (width,))])
    return Measurement(
        core=board.core,
        flash=flash,
        ram=ram,
        stack=int(figures[1]),
        instructions=float(took),
        labels=answered["label"].astype(np.int64),
        scores=answered["scores"].copy(),
    )


def _as_elements(rows: np.ndarray, probe: Probe) -> np.ndarray:
    rows = np.asarray(rows)
    if rows.ndim != 2 or not len(rows) or rows.shape[1] != probe.width:
        raise error(f"rows of {probe.width} codes, at least one", f"shape {rows.shape}", where="rows")
    elements = np.ascontiguousarray(rows, dtype=ELEMENTS[probe.element])
    if not np.array_equal(elements, rows, equal_nan=elements.dtype.kind == "f"):
        remedy = "fill gaps and encode the rows first" if probe.element.startswith("u") else "round them first"
        raise error(f"numbers within {probe.element}", "others", where="rows", remedy=remedy)
    return elements
