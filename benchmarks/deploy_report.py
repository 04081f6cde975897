"""Tables and sentences of `deploy.py`: every point, and for each of a peer which of ours is at least as good."""

from collections.abc import Iterator

from harness import Figures

AXES = ("error", "flash", "instructions")
POINTS = ("model", "error %", "flash bytes", "instructions", "stack", "mismatches", "from codes: flash", "instructions")
PAIRS = (
    "peer's point",
    "error %",
    "flash bytes",
    "instructions",
    "dominated by",
    "error %",
    "flash bytes",
    "instructions",
)
LEFT = ("model", "peer's point", "dominated by")  # columns of words


def at_least_as_good(one: Figures, other: Figures) -> bool:
    """Tell whether a point dominates or touches another: no larger in error, flash and instructions."""
    return all(one[axis] <= other[axis] for axis in AXES)


def judge(runs: list[Figures]) -> None:
    """Note for each peer's point the best of ours that dominates it, or what of ours comes next, and the reverse."""
    runs = [run for run in runs if "failed" not in run]
    for run in runs:
        others = [r for r in runs if r["ours"] != run["ours"] and r["data"] == run["data"]]
        better = min((r for r in others if at_least_as_good(r, run)), key=lambda r: r["error"], default=None)
        run["dominated_by"] = better["model"] if better else None
        if not run["ours"]:
            as_right = [r for r in others if r["error"] <= run["error"]]
            closest = min(as_right, key=lambda r: r["instructions"], default=None)
            run["closest"] = closest["model"] if closest else None


def cells(run: Figures) -> list[str]:
    """Write one point."""
    if "failed" in run:
        return [run["model"], f"failed: {run['failed']}", *[""] * 6]
    own = run.get("codes")
    from_codes = [f"{own['flash']:,}", f"{own['instructions']:,.0f}"] if own else ["", ""]
    return [run["model"], *_numbers(run), f"{run['stack']:,}", f"{run['mismatches']:,}", *from_codes]


def sections(result: Figures) -> Iterator[tuple[str, tuple[str, ...], list[list[str]]]]:
    """Yield tables: title, headings, rows."""
    for name, about in result["data"].items():
        mine, theirs = _points(result, name)
        of = {run["model"]: run for run in mine}
        yield (
            f"{name}: the peers' points, and ours that are at least as good in all three",
            PAIRS,
            [[run["model"], *_numbers(run), *_opposite(run, of)] for run in theirs],
        )
        rows = [cells(run) for run in result["runs"] if run["data"] == name]
        yield f"{name}: all points, {about['train']:,} + {about['test']:,} rows", POINTS, rows


def findings(result: Figures) -> Iterator[str]:
    """Say in sentences how the comparison went."""
    for name in result["data"]:
        mine, theirs = _points(result, name)
        wrong = sum(r["mismatches"] for r in mine)
        yield f"{name}: {wrong} mismatches between Python and C in our {len(mine)} models; " + (
            f"{sum(r['mismatches'] > 0 for r in theirs)} of the peers' {len(theirs)} have some, "
            f"at most {max((r['mismatches'] for r in theirs), default=0):,} rows"
        )
        left = [f"{r['model']} ({' / '.join(_numbers(r))})" for r in theirs if not r["dominated_by"]]
        yield f"{name}: our points dominate {len(theirs) - len(left)} of the peers' {len(theirs)}" + (
            f"; not, with error % / bytes / instructions, {'; '.join(left)}" if left else ""
        )
        beaten = [r["model"].removeprefix("tinybayes ") for r in mine if r["dominated_by"]]
        yield f"{name}: a peer's point dominates {len(beaten)} of our {len(mine)}" + (
            f": {'; '.join(beaten)}" if beaten else ""
        )


def markdown(result: Figures) -> str:
    """Write everything."""
    lines = [
        "# Exported classifiers on a Cortex-M0+",
        "",
        "Written by `benchmarks/deploy.py` from `deploy.json`; `benchmarks/README.md` says how to read it.",
        "",
        *(line for name, about in result["data"].items() for line in _origin(name, about)),
        "",
        *(f"- {line}" for line in findings(result)),
    ]
    for title, headings, rows in sections(result):
        lines += ["", f"## {title}", "", "| " + " | ".join(headings) + " |"]
        lines += ["|" + "|".join("---" if heading in LEFT else "---:" for heading in headings) + "|"]
        lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _origin(name: str, about: Figures) -> Iterator[str]:
    """Say where the points of a data set come from."""
    run = about["provenance"]
    versions = ", ".join(f"{package} {number}" for package, number in run["packages"].items() if number)
    yield f"- {name}: {about['source']}"
    yield f"  - {run['date']}, `{run['command']}`, commit {run['commit']}, Python {run['python']}, {versions}"


def _points(result: Figures, data: str) -> tuple[list[Figures], list[Figures]]:
    """Return our points and the peers'."""
    runs = [run for run in result["runs"] if run["data"] == data and "failed" not in run]
    return [r for r in runs if r["ours"]], [r for r in runs if not r["ours"]]


def _numbers(run: Figures) -> list[str]:
    return [f"{100 * run['error']:.2f}", f"{run['flash']:,}", f"{run['instructions']:,.0f}"]


def _opposite(run: Figures, mine: dict[str, Figures]) -> list[str]:
    """Write what of ours stands against a peer's point."""
    found = run["dominated_by"] or run["closest"]
    if found is None:
        return ["**nothing**; none of ours has so few errors", "", "", ""]
    name = found.removeprefix("tinybayes ")
    told = name if run["dominated_by"] else f"**nothing**; of ours with no more errors the quickest is {name}"
    return [told, *_numbers(mine[found])]
