"""The page of `run_all.py`: written from its JSON alone, losses as plainly as wins."""

import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from comparison_features import DOCUMENTATION, FEATURES
from harness import Figures

TITLE = "One page of truth"


def page(result: Figures) -> str:
    """Write everything."""
    parts = [*head(result), *features(result), *verdict(result)]
    for section in (classifiers, trees, cut_points, inference, boards, footprint):
        parts += section(result)
    return "\n".join(parts).rstrip() + "\n"


def head(result: Figures) -> Iterator[str]:
    about = result["provenance"]
    versions = ", ".join(f"{name} {number or 'not installed'}" for name, number in about["packages"].items())
    yield f"# {TITLE}"
    yield ""
    yield from prose(
        "What tinybayes and its peers can do, and how fast and how small they are: written by `benchmarks/run_all.py`"
        " from `benchmarks/results/comparison.json`; nothing is typed in by hand but the claims of the first table. All"
        " figures are from one run on one machine. **Bold** is the best. A peer that was not installed has no figures:"
        " that is not a loss of its."
    )
    yield f"- {about['date']}, `{about['command']}`, commit {about['commit']}, {about.get('minutes', '?')} minutes"
    yield (
        f"- {about['cpu']}, {about['cores']} cores, {about['system']}; load {about['load_before']:.2f} before and "
        f"{about.get('load_after', 0):.2f} after"
    )
    yield f"- Python {about['python']}, {versions}"
    if about.get("quick"):
        yield "- **A reduced run, to see that everything works: its figures are no comparison.**"
    if about.get("only"):
        yield f"- **Only {', '.join(about['only'])} are of this run: the others are from an earlier one.**"
    if about["load_before"] > 0.5:
        yield "- **The machine was not idle: the times are no comparison.**"
    yield ""


# ------------------------------------------------------------------------------------------------------------- features


def features(result: Figures) -> Iterator[str]:
    names = list(DOCUMENTATION)
    yield "## What they can do"
    yield ""
    yield from prose(
        "By hand; the names link to the documentation. ✓: the names that the claim needs exist in the installed"
        " version. ✗: they do not, so the claim is doubtful. Without a mark there was nothing to look for, or the"
        " library is not installed. *no*: we know of none; tell us where we are wrong."
    )
    yield from table(
        ["", *(f"[{name}]({DOCUMENTATION[name]})" for name in names)],
        [[feature, *(_claim(result, feature, name) for name in names)] for feature in FEATURES],
        numbers=False,
    )


def _claim(result: Figures, feature: str, library: str) -> str:
    claim = FEATURES[feature].get(library)
    if claim is None:
        return "no"
    found = result["features"].get(library)
    mark = "" if found is None or not claim.names else " ✓" if all(found.get(n) for n in claim.names) else " ✗"
    return f"{claim.word}{mark}" + (f": {claim.note}" if claim.note else "")


# -------------------------------------------------------------------------------------------------------------- figures


def verdict(result: Figures) -> Iterator[str]:
    """Say where a peer is better than ours, and where ours is best."""
    lost, won = [], 0
    for what, ours, others in _contests(result):
        better = {name: value for name, value in others.items() if value < ours}
        if better:
            found = (f"{n} takes {v / ours:.2g} of ours" for n, v in sorted(better.items(), key=lambda pair: pair[1]))
            lost.append(f"- {what}: {', '.join(found)}")
        elif others:
            won += 1
    yield "## Where others are better"
    yield ""
    yield f"Of {won + len(lost)} comparisons of time or size below, ours is best in {won}. Not in these:"
    yield ""
    yield from lost or ["- none in this run"]
    for data in ("digits", "letter"):
        left = [p["model"] for p in _points(result, data, False) if not _dominated(result, data, p)]
        if left:
            yield (
                f"- {data} on a board: no model of ours in this run is at least as good in error, flash and "
                f"instructions as {'; '.join(left)}"
            )
    yield ""


def _contests(result: Figures) -> Iterator[tuple[str, float, dict[str, float]]]:
    """Yield what is compared, our figure, and those of others; less is better."""
    groups: dict[tuple[str, str, str], dict[str, float]] = {}
    for run in result["runs"]:
        for step, value in _values(run).items():
            groups.setdefault((run["task"], run["data"], step), {})[run["library"]] = value
    for (task, data, step), found in groups.items():
        if "tinybayes" in found:
            ours = found.pop("tinybayes")
            yield ", ".join(part for part in (task, data, step) if part), ours, found


def _values(run: Figures) -> dict[str, float]:
    if run["task"] in ("naive Bayes", "TAN"):
        return {step: run[step]["wall"] for step in ("fit", "predict") if "wall" in run.get(step, {})}
    keys = {
        "tree": {"seconds": "learn"},
        "cut points": {"seconds": "cut"},
        "inference": {"one_ms": "one query"},
        "footprint": {"import_s": "import", "own_bytes": "bytes of the package", "all_bytes": "bytes installed"},
    }
    return {name: run[key] for key, name in keys.get(run["task"], {}).items() if key in run}


def classifiers(result: Figures) -> Iterator[str]:
    for task in ("naive Bayes", "TAN"):
        runs = _runs(result, task)
        if not runs:
            continue
        yield f"## {task[0].upper()}{task[1:]}: learn and predict"
        yield ""
        yield from prose(
            f"Seconds, all cores, each as it comes; steps over {result['limit']:g} s were stopped. [The data]"
            "(#the-data) are described below; `benchmarks/README.md` says how each is called. Not all learn the same:"
            " scikit-learn smooths no class prior, and the TAN of pyAgrum leaves weak edges out."
        )
        rows = []
        for data in dict.fromkeys(run["data"] for run in runs):
            some = [run for run in runs if run["data"] == data]
            best = {s: min((v[s] for v in map(_values, some) if s in v), default=None) for s in ("fit", "predict")}
            for run in some:
                steps = [_step(run, step, best[step]) for step in ("fit", "predict")]
                error = run.get("predict", {}).get("error")
                rows.append([data, run["model"], *steps, "" if error is None else f"{100 * error:.2f}"])
        yield from table(["data", "", "learn", "predict", "error %"], rows)
    if "data" in result:
        yield "### The data"
        yield ""
        for name, facts in result["data"].items():
            yield f"- {name}: " + ", ".join(f"{key} {value}" for key, value in facts.items())
        yield ""


def _step(run: Figures, step: str, best: float | None) -> str:
    if run.get("absent"):
        return "not installed"
    found = run.get(step, {})
    if "wall" in found:
        return bold(seconds(found["wall"]), found["wall"] == best)
    if "over" in found:
        return f"over {found['over']:g} s"
    if "over" in run.get("import", {}):
        return f"import over {run['import']['over']:g} s"
    return f"failed: {found['failed']}" if "failed" in found else "not reached"


def trees(result: Figures) -> Iterator[str]:
    yield from _simple(result, "tree", "Chow-Liu tree", "Seconds to learn the tree over all columns, without a class.")


def cut_points(result: Figures) -> Iterator[str]:
    about = "Seconds to find the cut points of Fayyad and Irani in ten columns; both find the same."
    yield from _simple(result, "cut points", "Discretisation", about, {"cuts": "cut points"})


def _simple(result: Figures, task: str, title: str, about: str, more: dict[str, str] | None = None) -> Iterator[str]:
    runs = _runs(result, task)
    if not runs:
        return
    yield f"## {title}"
    yield ""
    yield from prose(about)
    rows = []
    for data in dict.fromkeys(run["data"] for run in runs):
        some = [run for run in runs if run["data"] == data]
        best = min((run["seconds"] for run in some if "seconds" in run), default=None)
        for run in some:
            cells = [_cell(run, "seconds", best, seconds), _cell(run, "first", None, seconds)]
            rows.append([data, run["library"], *cells, *(f"{run.get(key, '')}" for key in more or ())])
    yield from table(["data", "", "seconds", "first call", *(more or {}).values()], rows)


def inference(result: Figures) -> Iterator[str]:
    runs = _runs(result, "inference")
    if not runs:
        return
    yield "## Exact inference"
    yield ""
    yield from prose(
        "Milliseconds for the posteriors of all variables, a fifth of them observed: queries one at a time, and of ours"
        " a batch of 1,000. Of pyAgrum the quicker of its two engines. Ours compiles the network first, once; pgmpy is"
        " asked for one variable after the other. pomegranate answers by loopy propagation, exact for trees."
    )
    rows = []
    for data in dict.fromkeys(run["data"] for run in runs):
        some = [run for run in runs if run["data"] == data]
        best = min((run["one_ms"] for run in some if "one_ms" in run), default=None)
        for run in some:
            one = _cell(run, "one_ms", best, lambda v: f"{v:,.3f}")
            batch = f"{run['batch_ms']:.4f}" if "batch_ms" in run else ""
            before = f"{run['prepare_s']:.2f}" if "prepare_s" in run else ""
            off = f"{run['largest_difference']:.0e}" if "largest_difference" in run else ""
            rows.append([data, f"{run['library']} {run.get('engine', '')}".strip(), one, batch, before, off])
    yield from table(["network", "", "one ms", "batch ms", "compile s", "difference to ours"], rows)


def boards(result: Figures) -> Iterator[str]:
    if not _runs(result, "boards"):
        return
    yield "## C on a Cortex-M0+"
    yield ""
    yield from prose(
        "Everybody gets the raw integers; `-Os`, an emulated board. Of everybody a few models, ours such as are learned"
        " in minutes; neural nets and many more points are in `benchmarks/results/deploy.md`. A model of a peer is"
        " dominated when one of ours is at least as good in error, flash and instructions, and one of ours when one of"
        " a peer is."
    )
    for data in dict.fromkeys(run["data"] for run in _runs(result, "boards")):
        yield f"### {data}"
        yield ""
        rows = []
        for run in _runs(result, "boards"):
            if run["data"] == data and "points" not in run:
                rows.append([run["library"], _cell(run, "points", None, str), "", "", "", ""])
        for mine in (True, False):
            for point in _points(result, data, mine):
                figures = [f"{100 * point['error']:.2f}", f"{point['flash']:,}", f"{point['instructions']:,.0f}"]
                by = _dominated(result, data, point)
                rows.append([point["model"], *figures, f"{point['mismatches']:,}", by or "nothing"])
        yield from table(["", "error %", "flash bytes", "instructions", "C differs from Python", "dominated by"], rows)


def _points(result: Figures, data: str, mine: bool) -> list[Figures]:
    points = [p for r in _runs(result, "boards") if r["data"] == data for p in r.get("points", ())]
    return [p for p in points if p["ours"] == mine and "failed" not in p]


def _dominated(result: Figures, data: str, point: Figures) -> str:
    axes = ("error", "flash", "instructions")
    better = [p for p in _points(result, data, not point["ours"]) if all(p[a] <= point[a] for a in axes)]
    return min(better, key=lambda p: p["error"])["model"] if better else ""


def footprint(result: Figures) -> Iterator[str]:
    runs = _runs(result, "footprint")
    if not runs:
        return
    yield "## Import and installed size"
    yield ""
    yield from prose(
        "Seconds of the import in a new process beyond those of an empty one (of ours with the classifier, since the"
        " package alone loads nothing); megabytes of the package, and of it with everything that it requires, without"
        " extras."
    )
    keys = ("import_s", "own_bytes", "all_bytes")
    best = {key: min((run[key] for run in runs if key in run), default=None) for key in keys}
    rows = []
    for run in runs:
        cells = [_cell(run, "import_s", best["import_s"], seconds)]
        cells += [_cell(run, key, best[key], lambda v: f"{v / 1e6:,.1f}") if key in run else "" for key in keys[1:]]
        note = (
            f"without {', '.join(run['absent'])}, not installed"
            if isinstance(run.get("absent"), list) and run["absent"]
            else ""
        )
        rows.append([run["library"], *cells, f"{run.get('required', '')}", note])
    yield from table(["", "import s", "package MB", "with all MB", "packages required", ""], rows)


def _runs(result: Figures, task: str) -> list[Figures]:
    return [run for run in result["runs"] if run["task"] == task]


def _cell(run: Figures, key: str, best: float | None, write: Callable[[Any], str]) -> str:
    if run.get("absent") is True:
        return "not installed"
    if key in run:
        return bold(write(run[key]), run[key] == best)
    if "over" in run:
        return f"over {run['over']:g} s"
    return f"failed: {run['failed']}" if "failed" in run else ""


def prose(text: str) -> list[str]:
    return [*textwrap.wrap(text, 120, break_long_words=False, break_on_hyphens=False), ""]


def seconds(value: float) -> str:
    return f"{value:.4f}" if value < 0.1 else f"{value:,.2f}"


def bold(text: str, really: bool) -> str:
    return f"**{text}**" if really else text


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], numbers: bool = True) -> Iterator[str]:
    words = ("", "data", "network", "dominated by")
    yield "| " + " | ".join(headings) + " |"
    yield "|" + "|".join("---" if not numbers or h in words else "---:" for h in headings) + "|"
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "/") for cell in row) + " |"
    yield ""
