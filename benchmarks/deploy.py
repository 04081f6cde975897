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
from deploy_peers import EXPORTERS, OWN, TREES, Encoded, Exported, Fitter, element_of
from deploy_report import findings, markdown, write_page
from deploy_tables import DATA, Table, load
from harness import Figures, provenance

from tinybayes.deploy._boards import boards
from tinybayes.deploy._boards.boards import KIB, Board
from tinybayes.deploy.measure import Measurement, measure_program
from tinybayes.errors import TinybayesError

HERE = Path(__file__).parent
KNOWN = boards.BOARDS
PACKAGES = ["numpy", "jax", "scikit-learn", "emlearn", "m2cgen", "micromlgen"]
# M0+ code on a board with more memory, for programs that do not fit the small one.
ROOMY = replace(KNOWN["m0+"], machine="mps2-an385", flash=4096 * KIB, ram=4096 * KIB, hertz=25_000_000)
MOST = 6e9  # instructions that one run may take; slow code of a peer gets fewer rows
PILOT = 32  # rows that tell how slow it is


def main(
    data: Annotated[list[str] | None, typer.Option(help="Data sets; by default all of them.")] = None,
    only: Annotated[str | None, typer.Option(help="ours or peers: the other points of the last run stay.")] = None,
    library: Annotated[
        list[str] | None, typer.Option(help="Of the peers only these generators of code; the other points stay.")
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option(help="Of the peers only these models; large forests compile for long.")
    ] = None,
    seconds: Annotated[float, typer.Option(help="Of each of our searches.")] = 60.0,
    quick: Annotated[bool, typer.Option("--quick", help="A few models, to see that everything works.")] = False,
    jobs: Annotated[int, typer.Option(help="Boards emulated at a time.")] = os.cpu_count() or 1,
    models: Annotated[Path | None, typer.Option(help="Folder that keeps our searches for the next run.")] = None,
    output: Annotated[Path | None, typer.Option(help="Folder for deploy.json and deploy.md.")] = None,
    page_only: Annotated[
        bool, typer.Option("--page-only", help="Measure nothing: write the pages from the last run.")
    ] = False,
) -> None:
    """Measure our exported classifiers and those of the peers."""
    warnings.simplefilter("ignore")
    boards.BUILD_SECONDS = 1200.0  # inlined forests are half a megabyte of code
    folder = output or (Path(tempfile.gettempdir()) if quick else HERE / "results")
    file = folder / "deploy.json"
    with tempfile.TemporaryDirectory() as unkept, ThreadPoolExecutor(jobs) as pool:
        kept = models or Path(unkept)
        for name in () if page_only else data or DATA:
            table = load(name)
            if only != "peers":
                started = ours(name, table, kept, 5.0 if quick else seconds, pool, quick)
                measure_all(file, name, table, "ours", started, {"seconds": seconds})
            if only != "ours":
                measure_all(file, name, table, "peers", peers(table, quick, pool, library, model), {}, library)
    result = json.loads(file.read_text())
    for line in findings(result):
        print(line)
    (folder / "deploy.md").write_text(markdown(result))
    if output is None and not quick:
        write_page(result, HERE.parent / "docs" / "export.md")


def measure_all(
    file: Path,
    name: str,
    table: Table,
    side: str,
    started: Iterator[Callable[[], Figures]],
    more: Figures,
    library: list[str] | None = None,
) -> None:
    """Measure our models or the peers' on one data set, and replace their points in the file."""
    began, about = time.monotonic(), provenance(PACKAGES) | more
    runs = [{"data": name, "side": side, **finish()} for finish in list(started)]
    about |= {"load_after": os.getloadavg()[0], "minutes": round((time.monotonic() - began) / 60, 1)}
    result = json.loads(file.read_text()) if file.exists() else {"data": {}, "runs": []}
    known = result["data"].get(name, {})
    result["data"][name] = {**known, **table.about(), side: about}
    old = [r for r in result["runs"] if r["data"] == name and r["side"] == side]
    result["runs"] = [r for r in result["runs"] if r not in old or not _of_library(r, library)] + runs
    file.write_text(json.dumps(result, indent=1) + "\n")
    print(f"{name}: {len(runs)} models, {side}, {about['minutes']} minutes", flush=True)


def _of_library(run: Figures, library: list[str] | None) -> bool:
    return not library or run["model"].split(":")[0] in library


def peers(
    table: Table, quick: bool, pool: Executor, library: list[str] | None = None, models: list[str] | None = None
) -> Iterator[Callable[[], Figures]]:
    """Fit and export the peers' models and start the measurements; yield functions that wait for the figures."""
    data = Encoded(table)
    fitter, y = Fitter(data), table.codes(table.test)
    for generator, (export, names) in EXPORTERS.items():
        for name in names[:: 4 if quick else 1] if not library or generator in library else ():
            if models and name not in models:
                continue
            element = element_of(generator, name, data)
            rows = data.rows(name, table.test, element)
            model = fitter.model(name, element)
            about = {
                "model": f"{generator}: {name}",
                "ours": generator in OWN,
                "validation_error": fitter.choose(name)[1],
            }
            about["error with gaps filled"] = error(model.predict(data.rows(name, table.with_gaps(), element)), y)
            try:
                code = export(model, element, rows.shape[1], len(np.unique(y)))
            except (NotImplementedError, AttributeError, ValueError, RuntimeError) as problem:
                yield lambda about=about, problem=problem: about | {"failed": public(problem)}
                continue
            limited = name not in TREES
            started = {b: pool.submit(weigh, code, rows, KNOWN[b], limited) for b in BOARDS}
            python = (code.labels or model.predict)(rows)
            yield lambda about=about, s=started, python=python: about | finish_peer(s, python, y, about["ours"])


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


def finish_peer(started: dict[str, Future[Measurement]], python: np.ndarray, y: np.ndarray, ours: bool) -> Figures:
    """Compare the answers of the boards with Python's, and write down what was measured; ours has no gap code."""
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
    return {"no gap code": figures} if ours else figures


if __name__ == "__main__":
    typer.run(main)
