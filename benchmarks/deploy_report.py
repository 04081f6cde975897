"""Tables and sentences of `deploy.py`: every point, and for each of a peer which of ours is at least as good."""

import math
import textwrap
from collections.abc import Iterator
from pathlib import Path

from harness import Figures

CORES = {"m0+": "Cortex-M0+", "m4": "Cortex-M4"}
PROGRAMS = ("no gap code", "gap code")
BEGIN, END = "<!-- deploy: written by benchmarks/deploy.py -->\n", "<!-- end -->\n"
PEERS = (
    *("peer's model", "error %", "gaps filled: error %", "mismatches"),
    *("M0+: flash", "RAM", "stack", "instructions", "no worse of ours"),
    *("M4: flash", "instructions", "no worse of ours"),
)
OURS = (
    *("model", "error %", "parameters", "M0+: flash", "stack", "instructions", "M4: flash", "instructions"),
    *("gap code: M0+ flash", "stack", "instructions", "M4 flash", "instructions"),
    *("rows with gaps: error %", "M0+ instructions", "mismatches"),
)
WORDS = ("model", "peer's model", "no worse of ours", "data", "library")
COUNTED = (
    "How many of the peers' models are dominated: one of ours is at least as good in error, flash and instructions. In "
    "brackets how many of ours a peer's model dominates. Ours are exported without gap code, because the peers have "
    "none; the columns beside count the same with it:"
)
BEST = "The model of each library with the lowest validation error:"
Axes = tuple[float, float, float]


def axes(run: Figures, core: str, program: str = "no gap code") -> Axes:
    """Return error, flash and instructions of a point; `program` is one of ours, and may not have been measured."""
    measured = run.get(program) if run["ours"] else run
    if measured is None:
        return math.inf, math.inf, math.inf
    return measured["error"], measured[core]["flash"], measured[core]["instructions"]


def dominates(one: Axes, other: Axes) -> bool:
    """Tell whether a point is no worse than another on all axes."""
    return all(a <= b for a, b in zip(one, other, strict=True))


def complete(result: Figures) -> list[str]:
    """Return the data sets with points of both sides, in the order of their names."""
    return sorted(name for name, about in result["data"].items() if "ours" in about and "peers" in about)


def points(result: Figures, data: str) -> tuple[list[Figures], list[Figures]]:
    """Return our points and the peers'."""
    runs = [run for run in result["runs"] if run["data"] == data and "failed" not in run]
    return [r for r in runs if r["ours"]], [r for r in runs if not r["ours"]]


def no_worse(run: Figures, mine: list[Figures], core: str, program: str = "no gap code") -> Figures | None:
    """Return the most accurate of our points that dominate a peer's."""
    better = [r for r in mine if dominates(axes(r, core, program), axes(run, core))]
    return min(better, key=lambda r: axes(r, core, program), default=None)


def summary(result: Figures, data: str, core: str) -> Figures:
    """Count how the comparison went on one data set and core."""
    mine, theirs = points(result, data)
    left = [r for r in theirs if no_worse(r, mine, core) is None]
    return {
        "peers": len(theirs),
        "dominated": len(theirs) - len(left),
        "dominated with gap code": sum(no_worse(r, mine, core, "gap code") is not None for r in theirs),
        "left": [r["model"] for r in left],
        "ours": len(mine),
        "beaten": [r["model"] for r in mine if any(dominates(axes(p, core), axes(r, core)) for p in theirs)],
    }


def mismatches(result: Figures, data: str) -> tuple[int, int, int, int]:
    """Return our mismatches over all programs, boards and rows; the peers with some, all of them, and the most."""
    mine, theirs = points(result, data)
    wrong = [r["mismatches"] for r in theirs]
    own = sum(r[part]["mismatches"] for r in mine for part in (*PROGRAMS, "gaps") if part in r)
    return own, sum(w > 0 for w in wrong), len(wrong), max(wrong, default=0)


def agreement(result: Figures) -> str:
    """Say on how many rows C differs from Python."""
    found = [mismatches(result, data) for data in complete(result)]
    count = sum(len(points(result, data)[0]) for data in complete(result))
    own, some, peers = (sum(f[i] for f in found) for i in range(3))
    return (
        f"Mismatches between Python and C in our {count} models, over all test rows, with and without gap code and for "
        f"rows with gaps, on both cores: {own:,}. {some} of the peers' {peers} exports differ from Python in some rows."
    )


def findings(result: Figures) -> Iterator[str]:
    """Say in sentences how the comparison went."""
    for data in complete(result):
        own, some, peers, most = mismatches(result, data)
        mine, _ = points(result, data)
        yield (
            f"{data}: {own} mismatches between Python and C in our {len(mine)} models, with and without gap code, "
            f"and for rows with gaps; {some} of the peers' {peers} models have some, at most {most:,} rows"
        )
        for core, title in CORES.items():
            s = summary(result, data, core)
            yield (
                f"{data}, {title}: ours are no worse in error, flash and instructions than {s['dominated']} of the "
                f"peers' {s['peers']} ({s['dominated with gap code']} if ours carry gap code)"
                + (f"; not than {'; '.join(s['left'])}" if s["left"] else "")
                + f". A peer's is no worse than {len(s['beaten'])} of our {s['ours']}"
                + (f": {'; '.join(s['beaten'])}" if s["beaten"] else "")
            )


def sections(result: Figures) -> Iterator[tuple[str, tuple[str, ...], list[list[str]]]]:
    """Yield tables: title, headings, rows."""
    for data, about in sorted(result["data"].items()):
        mine, theirs = points(result, data)
        words = f"{about['train']:,} + {about['test']:,} rows, {about['numbers']} numbers, "
        words += f"{about['categories']} categories, {about['classes']} classes"
        yield f"{data}: ours ({words})", OURS, [own_cells(run) for run in mine]
        rows = [peer_cells(run, mine) for run in theirs]
        failed = [r for r in result["runs"] if r["data"] == data and "failed" in r]
        rows += [[r["model"], f"failed: {r['failed']}", *[""] * (len(PEERS) - 2)] for r in failed]
        yield f"{data}: the peers' models", PEERS, rows


def own_cells(run: Figures) -> list[str]:
    """Write one of our points."""
    plain = run["no gap code"]
    name = run["model"].removeprefix("tinybayes: ")
    cells = [*numbers(plain["m0+"], "flash", "stack", "instructions"), *numbers(plain["m4"], "flash", "instructions")]
    if "gap code" not in run:  # a peer's model, written by us
        return [name, percent(plain["error"]), "", *cells, *[""] * (len(OURS) - 9), f"{plain['mismatches']:,}"]
    full, gaps = run["gap code"], run["gaps"]
    wrong = sum(part["mismatches"] for part in (plain, full, gaps))
    return [
        name,
        percent(plain["error"]),
        f"{-(-run['bits'] // 8):,}",
        *cells,
        *numbers(full["m0+"], "flash", "stack", "instructions"),
        *numbers(full["m4"], "flash", "instructions"),
        percent(gaps["error"]),
        *numbers(gaps["m0+"], "instructions"),
        f"{wrong:,}",
    ]


def peer_cells(run: Figures, mine: list[Figures]) -> list[str]:
    """Write one point of a peer, and which of ours is no worse."""
    cells = [run["model"], percent(run["error"]), percent(run["error with gaps filled"]), f"{run['mismatches']:,}"]
    for core, figures in (("m0+", ("flash", "ram", "stack", "instructions")), ("m4", ("flash", "instructions"))):
        found = no_worse(run, mine, core)
        cells += numbers(run[core], *figures)
        cells.append("**none**" if found is None else found["model"].removeprefix("tinybayes: "))
    return cells


def markdown(result: Figures) -> str:
    """Write everything."""
    lines = [
        "# Exported classifiers on microcontrollers",
        "",
        "Written by `benchmarks/deploy.py` from `deploy.json`; `benchmarks/README.md` says how to read it.",
        "",
        *(line for name, about in sorted(result["data"].items()) for line in _origin(name, about)),
        "",
        *(f"- {line}" for line in findings(result)),
    ]
    for title, headings, rows in sections(result):
        lines += ["", f"## {title}", "", *table(headings, rows)]
    return "\n".join(lines) + "\n"


def counts(result: Figures) -> Iterator[str]:
    """Yield a table of how often ours are no worse, and in brackets how many of ours a peer's is no worse than."""
    kinds = [f"{core}: {words}" for core in ("M0+", "M4") for words in ("dominated", "with gap code")]
    rows = []
    for data in complete(result):
        both = [summary(result, data, core) for core in CORES]
        cells = [c for s in both for c in (f"{s['dominated']} ({len(s['beaten'])})", f"{s['dominated with gap code']}")]
        rows.append([data, f"{both[0]['ours']}", f"{both[0]['peers']}", *cells])
    yield from table(("data", "our models", "peers' models", *kinds), rows, words=("data",))


def most_accurate(result: Figures) -> Iterator[str]:
    """Yield a table of the model of each library with the lowest validation error."""
    headings = ("data", "model", "error %", "M0+: flash", "instructions", "M4: flash", "instructions", "mismatches")
    rows = []
    for data in complete(result):
        mine, theirs = points(result, data)
        by_library: dict[str, list[Figures]] = {}
        for run in (*mine, *theirs):
            by_library.setdefault(run["model"].split(":")[0], []).append(run)
        for runs in by_library.values():
            best = min(runs, key=lambda r: (r["validation_error"], _place(r)["m0+"]["flash"]))
            place = _place(best)
            cells = [c for core in CORES for c in numbers(place[core], "flash", "instructions")]
            rows.append([data, best["model"], percent(place["error"]), *cells, f"{place['mismatches']:,}"])
    yield from table(headings, rows, words=("data", "model"))


def _place(run: Figures) -> Figures:
    return run["no gap code"] if run["ours"] else run


def write_page(result: Figures, page: Path) -> None:
    """Replace the written part of a page of the docs."""
    before, rest = page.read_text().split(BEGIN)
    page.write_text(before + written(result) + rest.split(END, 1)[1])


def written(result: Figures) -> str:
    """Return the part of the page that is written here."""
    lines = [
        *(f"- {line}" for line in origin(result)),
        "",
        "The model of each library with the lowest validation error:",
        "",
    ]
    lines += [*most_accurate(result), "", *textwrap.wrap(COUNTED, 140), "", *counts(result), ""]
    return BEGIN + "\n".join([*lines, *textwrap.wrap(agreement(result), 140)]) + "\n" + END


def origin(result: Figures) -> Iterator[str]:
    """Say how the figures were made."""
    for side, words in (("ours", "Ours"), ("peers", "The peers'")):
        runs = [about[side] for about in result["data"].values() if side in about]
        commits = ", ".join(dict.fromkeys(str(run["commit"]) for run in runs))
        seconds = {run["seconds"] for run in runs if "seconds" in run}
        lengths = " to ".join(dict.fromkeys(f"{f(seconds):g}" for f in (min, max))) if seconds else ""
        search = f"searches of {lengths} s, seed 0, " if seconds else ""
        yield (
            f"{words}: `python benchmarks/deploy.py --only {side}`, {search}{max(run['date'] for run in runs)[:10]}, "
            f"commit {commits}, {runs[0]['cores']} cores of {runs[0]['cpu']}, load up to "
            f"{max(run['load_after'] for run in runs):.0f}"
        )


def _origin(name: str, about: Figures) -> Iterator[str]:
    """Say where the points of a data set come from."""
    yield f"- {name}: {about['source']}"
    for side in ("ours", "peers"):
        if side in about:
            run = about[side]
            versions = ", ".join(f"{package} {number}" for package, number in run["packages"].items() if number)
            search = f", searches of {run['seconds']:g} s with seed 0" if "seconds" in run else ""
            yield (
                f"  - {side}: {run['date']}, `{run['command']}`{search}, commit {run['commit']}, {run['minutes']} "
                f"minutes on {run['cores']} cores of {run['cpu']}, load {run['load_before']:.1f} to "
                f"{run['load_after']:.1f}, Python {run['python']}, {versions}"
            )


def numbers(place: Figures, *keys: str) -> list[str]:
    return [f"{place[key]:,.0f}" for key in keys]


def percent(share: float) -> str:
    return f"{100 * share:.2f}"


def table(headings: tuple[str, ...], rows: list[list[str]], words: tuple[str, ...] = WORDS) -> Iterator[str]:
    yield "| " + " | ".join(headings) + " |"
    yield "|" + "|".join("---" if heading in words else "---:" for heading in headings) + "|"
    yield from ("| " + " | ".join(row) + " |" for row in rows)
