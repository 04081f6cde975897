"""Exported classifiers on emulated microcontrollers, from raw rows to labels, beside other generators of C.

Run it as ``python benchmarks/deploy.py`` with the peers installed (``pip install emlearn m2cgen micromlgen``) and
Debian's gcc-arm-none-eabi, libnewlib-arm-none-eabi and qemu-system-arm; README.md beside it says how to read it.
"""

import json
import os
import re
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from deploy_ours import BOARDS, cost, ours
from deploy_peers import EXPORTERS, TREES, Encoded, Exported, Fitter, element_of
from deploy_report import findings, markdown, write_page
from deploy_tables import DATA, Table, load
from harness import Figures, provenance

from tinybayes.deploy._boards.boards import BOARDS as KNOWN
from tinybayes.deploy._boards.boards import KIB, Board
from tinybayes.deploy.measure import Measurement, measure_program
from tinybayes.errors import TinybayesError

HERE = Path(__file__).parent
PACKAGES = ["numpy", "jax", "scikit-learn", "emlearn", "m2cgen", "micromlgen"]
# M0+ code on a board with more memory, for programs that do not fit the small one.
ROOMY = replace(KNOWN["m0+"], machine="mps2-an385", flash=4096 * KIB, ram=4096 * KIB, hertz=25_000_000)
MOST = 6e9  # instructions that one run may take; slow code of a peer gets fewer rows
PILOT = 32  # rows that tell how slow it is


def main(
    data: Annotated[list[str] | None, typer.Option(help="Data sets; by default all of them.")] = None,
    seconds: Annotated[float, typer.Option(help="Of each of our searches.")] = 60.0,
    quick: Annotated[bool, typer.Option("--quick", help="A few models, to see that everything works.")] = False,
    models: Annotated[Path | None, typer.Option(help="Folder that keeps our searches for the next run.")] = None,
    output: Annotated[Path | None, typer.Option(help="Folder for deploy.json and deploy.md.")] = None,
    page_only: Annotated[
        bool, typer.Option("--page-only", help="Measure nothing: write the pages from the last run.")
    ] = False,
) -> None:
    """Measure our exported classifiers and those of the peers, in one run."""
    warnings.simplefilter("ignore")
    folder = output or (Path(tempfile.gettempdir()) if quick else HERE / "results")
    file = folder / "deploy.json"
    result: Figures = {"data": {}, "runs": []}
    if file.exists() and (data or page_only):
        result = json.loads(file.read_text())  # the other data sets stay: points of different ones are not compared
    with tempfile.TemporaryDirectory() as unkept, ThreadPoolExecutor(os.cpu_count()) as pool:
        for name in () if page_only else data or DATA:
            about, runs = measure_all(name, models or Path(unkept), 5.0 if quick else seconds, quick, pool)
            result["runs"] = [run for run in result["runs"] if run["data"] != name] + runs
            result["data"][name] = about
            file.write_text(json.dumps(result, indent=1) + "\n")  # what is measured is kept
    for line in findings(result):
        print(line)
    (folder / "deploy.md").write_text(markdown(result))
    if output is None and not quick:
        write_page(result, HERE.parent / "docs" / "export.md")


def measure_all(name: str, folder: Path, seconds: float, quick: bool, pool: Executor) -> tuple[Figures, list[Figures]]:
    """Learn and measure everything on one data set."""
    began, table, runs = time.monotonic(), load(name), []
    about = {**table.about(), "seconds": seconds, "provenance": provenance(PACKAGES)}
    waiting = [*ours(name, table, folder, seconds, pool, 2 if quick else 8), *peers(table, quick, pool)]
    for finish in waiting:
        run = {"data": name, **finish()}
        runs.append(run)
        print(json.dumps({k: v for k, v in run.items() if k != "settings"}), flush=True)
    about["provenance"] |= {"load_after": os.getloadavg()[0], "minutes": round((time.monotonic() - began) / 60, 1)}
    return about, runs


def peers(table: Table, quick: bool, pool: Executor) -> Iterator[Callable[[], Figures]]:
    """Fit and export the peers' models and start the measurements; yield functions that wait for the figures."""
    data = Encoded(table)
    fitter, y = Fitter(data), table.codes(table.test)
    for library, (export, names) in EXPORTERS.items():
        for name in names[:: 4 if quick else 1]:
            element = element_of(library, name, data)
            rows = data.rows(name, table.test, element)
            model = fitter.model(name, element)
            about = {"model": f"{library}: {name}", "ours": False, "validation_error": fitter.choose(name)[1]}
            about["error with gaps filled"] = error(model.predict(data.rows(name, table.with_gaps(), element)), y)
            try:
                code = export(model, element, rows.shape[1], len(np.unique(y)))
            except (NotImplementedError, AttributeError, ValueError, RuntimeError) as problem:
                yield lambda about=about, problem=problem: about | {"failed": public(problem)}
                continue
            limited = name not in TREES
            started = {b: pool.submit(weigh, code, rows, KNOWN[b], limited) for b in BOARDS}
            python = model.predict(rows)
            yield lambda about=about, s=started, python=python: about | finish_peer(s, python, y)


def public(problem: Exception) -> str:
    """Return the message of an exception without the paths of this machine."""
    return re.sub(r"(/[\w.-]+)+/", "", str(problem))[:200]


def error(labels: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean(labels != y))


def weigh(code: Exported, rows: np.ndarray, board: Board, limited: bool) -> Measurement:
    """Measure on a board, or on a large one if the code does not fit; slow code gets some of the rows."""

    def run(part: np.ndarray, where: Board) -> Measurement:
        return measure_program(code.files, code.probe, part, where, flags=code.flags, timeout=600)

    try:
        found = run(rows[:PILOT] if limited else rows, board)
    except TinybayesError:
        if board is not KNOWN["m0+"]:
            raise
        board = ROOMY
        found = run(rows[:PILOT] if limited else rows, board)
    return run(rows[: max(200, int(MOST / (2 * found.instructions)))], board) if limited else found


def finish_peer(started: dict[str, Future[Measurement]], python: np.ndarray, y: np.ndarray) -> Figures:
    """Compare the answers of the boards with Python's, and write down what was measured."""
    figures: Figures = {"rows": 0}
    for board, future in started.items():
        try:
            found = future.result()
        except TinybayesError as problem:
            return {"failed": public(problem)}
        rows = len(found.labels)
        if rows > figures["rows"]:
            mismatches = int((found.labels != python[:rows]).sum())
            figures |= {"rows": rows, "error": error(found.labels, y[:rows]), "mismatches": mismatches}
        figures[board] = cost(found)
    return figures


if __name__ == "__main__":
    typer.run(main)
