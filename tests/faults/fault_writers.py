"""Every command that writes a file, where it cannot: on a full disk and in a directory that may only be read."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fault_data import states, table
from fault_harness import Result, in_child, leftovers, mounted, read_only, run, visible
from fault_kills import OLD, TARGETS, models_whole, patiently
from fault_studies import front_problems, study_problems, trials_of

PAGE = 4096
EXPLORE = ["--families", "closed-form,tied,tree,naive", "--workers", "1", "--time", "3s"]
LONGER = ["--time", "8s"]  # a new database alone takes a second or two


@dataclass(frozen=True)
class Writer:
    """A command that writes to a directory."""

    name: str
    command: Callable[[Path], list[Any]]


def writers(work: Path) -> list[Writer]:
    """Make models to write from, and return all commands that write."""
    data, chain = table(work / "table.csv", 2000), states(work / "states.csv", 2000, 8)
    labelled = [data, "--target", "label"]
    net, tied, circuit, search = work / "net.tb", work / "tied.tb", work / "circuit.tb", work / "search"
    latent, detector = ["--method", "latent", "--hidden-states", "3", "--epochs", "2"], work / "detector.tb"
    made = [
        ["fit", *labelled, "-o", net],
        ["tie", net, "--levels", "16", "-o", tied],
        ["learn-circuit", chain, "-o", circuit],
        ["learn-circuit", chain, *latent, "--false-alarm-rate", "0.05", "-o", detector],
        ["explore", *labelled, *EXPLORE, "-o", search],
    ]
    ended = run(work / "made", *made)
    if ended.code:
        raise RuntimeError(ended.err)
    grow = ["learn-circuit", chain, "--checkpoint"]
    found = [
        Writer("fit", lambda out: ["fit", *labelled, "-o", out / "model.tb"]),
        Writer("report page", lambda out: ["fit", *labelled, "-o", work / "x.tb", "--report", out / "page.html"]),
        Writer("learn-circuit", lambda out: ["learn-circuit", chain, "-o", out / "circuit.tb"]),
        Writer("latent tree", lambda out: ["learn-circuit", chain, *latent, "-o", out / "latent.tb"]),
        Writer("learn-trees", lambda out: ["learn-trees", *labelled, "--rounds", "5", "-o", out / "trees.tb"]),
        Writer("alarms", lambda out: ["predict", detector, chain, "-o", out / "alarms.csv"]),
        Writer("detector to c", lambda out: ["export", detector, "--to", "c", "-o", out / "code"]),
        Writer("infer", lambda out: ["infer", net, "-o", out / "answers"]),
        Writer("checkpoint", lambda out: [*grow, out / "growth.ckpt", "-o", work / "y.tb"]),
        Writer("tie", lambda out: ["tie", net, "--levels", "8", "-o", out / "tied.tb"]),
        Writer("plot", lambda out: ["plot", search, "--figure", "front", "-o", out / "front.pdf"]),
    ]
    for name, model in (("a.bif", net), ("a.bif.gz", net), ("a.xmlbif", net), ("a.uai", net), ("a.ac", circuit)):
        found.append(Writer(f"convert to {name[1:]}", _convert(model, name)))
    for name in ("p.csv", "p.tsv", "p.csv.gz", "p.parquet"):
        found.append(Writer(f"predict to {name[1:]}", _predict(net, data, name)))
    return found + [Writer(f"export to {target}", _export(tied, target)) for target in TARGETS]


def _convert(model: Path, name: str) -> Callable[[Path], list[Any]]:
    return lambda out: ["convert", model, out / name]


def _predict(net: Path, data: Path, name: str) -> Callable[[Path], list[Any]]:
    return lambda out: ["predict", net, data, "--proba", "-o", out / name]


def _export(net: Path, target: str) -> Callable[[Path], list[Any]]:
    return lambda out: ["export", net, "--to", target, "-o", out / "code"]


def _rehearsed(writer: Writer, work: Path) -> dict[str, bytes]:
    """Run a command where there is room, and return its files."""
    ended = run(work / "room", writer.command(work / "room" / "out"))
    if ended.code:
        raise RuntimeError(f"{writer.name} does not run even without a fault: {ended.err[-500:]}")
    files = visible(work / "room" / "out")
    for name in files:
        (work / "room" / "out" / name).unlink()
    return files


def _put_old(place: Path, names: Any) -> None:
    for name in names:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        if not name.endswith(".ckpt"):  # what is no checkpoint is refused before anything is written
            (place / name).write_bytes(OLD)


def _fill(place: Path, pages: int) -> None:
    """Fill a small file system but for some pages."""
    path = place / "filler"
    with open(path, "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(PAGE))
        except OSError:
            size = file.seek(0, os.SEEK_END)
        file.truncate(max(0, size - pages * PAGE))


def full_disk(work: Path, kills: int, seed: int) -> Result:
    """The disk is full, or becomes so halfway: every command but `explore` that
    writes, in all its formats

    exit code 2 and one line, no traceback; the old file untouched, nothing left behind
    """
    result = Result()
    (work / "room" / "out").mkdir(parents=True)
    for writer in writers(work):
        files = _rehearsed(writer, work)
        size = sum(-(-len(content) // PAGE) for content in files.values())
        for pages in sorted({0, 1, size // 2}):
            with mounted(work / "small", "8m") as place:
                _put_old(place, files)
                before = visible(place)
                _fill(place, pages)
                ended = run(work / "run", writer.command(place))
                (place / "filler").unlink()
                result.tried += 1
                result.saw("it fitted" if ended.code == 0 else "refused")
                problems = [] if ended.code == 0 else ended.clean_error()
                after = {name: content for name, content in visible(place).items() if not name.endswith(".ckpt")}
                if ended.code and after != before:
                    problems.append("the files that were there have changed")
                if leftovers(place):
                    problems.append(f"left {leftovers(place)}")
                result.blame(f"{writer.name}, {pages} pages free", problems)
    return result


def full_disk_explore(work: Path, kills: int, seed: int) -> Result:
    """The disk becomes full during `explore`, with a journal and with SQLite, at 8 fill levels each

    exit code 2 and one line, no traceback; with room again the same command goes on, no trial lost or doubled
    """
    result = Result()
    data = table(work / "table.csv", 600)
    for store in ("journal", "sqlite"):
        for pages in (0, 2, 10, 40, 80, 120, 250, 400):
            with mounted(work / "small", "16m") as place:
                _fill(place, pages)
                out = place / "out"
                options = ["--storage", f"sqlite:///{out}/study.db", *LONGER] if store == "sqlite" else []
                command = ["explore", data, "--target", "label", *EXPLORE, *options, "-o", out]
                ended = run(work / "run", command)
                (place / "filler").unlink()
                result.tried += 1
                result.saw("it fitted" if ended.code == 0 else "refused")
                problems = [] if ended.code == 0 else ended.clean_error()
                problems += models_whole(out, {}) + in_child(front_problems, str(out)) if out.exists() else []
                before = in_child(trials_of, str(out)) if out.exists() else []
                again = patiently(work / "run", [command], result)
                if again.code:
                    problems.append(f"not resumed: {again.err.strip()[-300:]}")
                else:
                    problems += in_child(study_problems, str(out), before)
                    problems += [f"left {leftovers(out)[:3]}"] if leftovers(out) else []
                result.blame(f"{store}, {pages} pages free", problems)
    return result


def read_only_directory(work: Path, kills: int, seed: int) -> Result:
    """The directory may only be read (a file system mounted read-only): every command that writes, `explore` too

    exit code 2 and one line, no traceback; the old file untouched
    """
    result = Result()
    (work / "room" / "out").mkdir(parents=True)
    data = work / "table.csv"
    tried = writers(work)
    for store in ("journal", "sqlite"):
        tried.append(Writer(f"explore, {store}", _explore(data, store)))
    for writer in tried:
        with mounted(work / "small", "16m") as place:
            if writer.name.startswith("explore"):
                run(work / "run", writer.command(place))  # a search that is to be taken up again
            else:
                _put_old(place, _rehearsed(writer, work))
            before = visible(place)
            read_only(place, True)
            ended = run(work / "run", writer.command(place))
            result.tried += 1
            problems = ended.clean_error()
            if visible(place) != before:
                problems.append("the files that were there have changed")
            result.blame(writer.name, problems)
    return result


def _explore(data: Path, store: str) -> Callable[[Path], list[Any]]:
    def command(out: Path) -> list[Any]:
        storage = ["--storage", f"sqlite:///{out}/study.db", *LONGER] if store == "sqlite" else []
        return ["explore", data, "--target", "label", *EXPLORE, *storage, "-o", out / "search"]

    return command
