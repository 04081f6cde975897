"""The page of `scaling.py`: exponents, flags and tables from the figures of the JSON file alone."""

from pathlib import Path
from typing import Any

import numpy as np

Figures = dict[str, Any]

FLOOR_SECONDS, FLOOR_BYTES = 0.01, 8e6  # below, a figure is noise and start-up
BLOCKS = 16e6  # bytes that blocks of rows may take in any call, however large its table
SLACK = 0.15  # above the theory: caches that overflow and a logarithm
HEAD = """# How time and memory grow

<!-- Written by benchmarks/scaling.py from benchmarks/results/scaling.json; do not edit. -->

*One size grows at a time, up to ten million rows, 5,000 features, 1,000 states and 1,000 classes. The tables compare
the exponent fitted to the measured times with the theoretical exponent of the algorithm.*

Each point runs in its own process, with everything compiled beforehand. Time is the best of up to five calls. Memory is
the peak during the first call, beyond the table and the model. An exponent is fitted by least squares to the
logarithms, over the points of at least {floor:.0f} ms (memory: {bytes:.0f} MB); constant costs in the small points make
it smaller. Exponents more than {slack} above the theory are flagged. *End* is the exponent between the last two points.

{about}

"""


def write_page(results: Figures, path: Path) -> None:
    """Write the page."""
    parts = [HEAD.format(floor=1e3 * FLOOR_SECONDS, bytes=FLOOR_BYTES / 1e6, slack=SLACK, about=_about(results))]
    parts += [_flags(results), _exponents(results), _copies(results), _points(results)]
    path.write_text("".join(parts).rstrip() + "\n")


def exponent(points: list[Figures], axis: str, figure: str, floor: float) -> tuple[float, float] | None:
    """Return the fitted exponent and that of the last step; None with fewer than two points above the floor."""
    above = [(p[axis], p[figure]) for p in points if p.get(figure, 0) >= floor]
    if len(above) < 2:
        return None
    x, y = np.log(np.array(above, dtype=float)).T
    return float(np.polyfit(x, y, 1)[0]), float((y[-1] - y[-2]) / (x[-1] - x[-2]))


def flagged(sweep: Figures) -> list[str]:
    """Say what of a sweep grows faster than its theory."""
    axis, found = sweep["axis"], []
    for figure, floor, theory in (
        ("seconds", FLOOR_SECONDS, sweep["theory"]),
        ("peak", FLOOR_BYTES, sweep["memory_theory"]),
    ):
        fit = exponent(sweep["points"], axis, figure, floor)
        if fit is not None and fit[0] > theory + SLACK:
            name = "time" if figure == "seconds" else "memory"
            line = f"{sweep['case']}: {name} grows with {axis} as {fit[0]:.2f}, the theory says {theory:g}"
            found.append(f"{line}: {sweep['note']}." if sweep.get("note") else f"{line}; the reason is not known.")
    return found


def too_much(copy: Figures) -> str | None:
    """Say where a call takes more memory beside its table than it should."""
    if "peak" not in copy or copy["peak"] <= copy["limit"] * copy["table"] + BLOCKS:
        return None
    share, room = copy["peak"] / copy["table"], f"{BLOCKS / 1e6:.0f} MB for blocks of rows"
    return f"{copy['name']}, {copy['kind']}: {share:.2f} of the table, allowed {copy['limit']:.2f} and {room}"


def _about(results: Figures) -> str:
    packages = ", ".join(f"{name} {version}" for name, version in results["packages"].items())
    loads = f"load {results['load_before']:.1f} before and {results['load_after']:.1f} after"
    text = (
        f"{results['cpu']}, {results['cores']} cores, {loads}; Python {results['python']}, {packages}; "
        f"commit {results['commit']}; `{results['command']}`, {results['seconds']:.0f} s."
    )
    return text + (
        " **A quick run with small sizes: a proof that it runs, no measurement.**" if results["quick"] else ""
    )


def _flags(results: Figures) -> str:
    slow = [line for sweep in results["sweeps"] for line in flagged(sweep)]
    large = [line for copy in results["copies"] if (line := too_much(copy))]
    broken = [
        f"{s['case']}, {s['axis']}: {p['failed']}" for s in results["sweeps"] for p in s["points"] if "failed" in p
    ]
    broken += [f"{c['name']}, {c['kind']}: {c['failed']}" for c in results["copies"] if "failed" in c]
    text = "## What is flagged\n\n"
    if not slow + large + broken:
        return text + "Nothing: no exponent is worse than its theory, and no call copies its table.\n\n"
    return text + "".join(f"- {line}\n" for line in slow + large + broken) + "\n"


def _exponents(results: Figures) -> str:
    text = "## Exponents\n\n"
    head = "| | grows | theory | time | end | seconds at the largest | memory | MB at the largest |\n"
    for group in dict.fromkeys(sweep["group"] for sweep in results["sweeps"]):
        text += f"### {group.capitalize()}\n\n{head}|---|---|---:|---:|---:|---:|---:|---:|\n"
        for sweep in (s for s in results["sweeps"] if s["group"] == group):
            text += _exponent_row(sweep)
        names = dict.fromkeys((s["case"], s["why"]) for s in results["sweeps"] if s["group"] == group)
        text += "\n" + "".join(f"- *{name}*: {why}.\n" for name, why in names) + "\n"
    return text


def _exponent_row(sweep: Figures) -> str:
    axis, done = sweep["axis"], [p for p in sweep["points"] if "seconds" in p]
    if not done:
        return f"| {sweep['case']} | {axis} | {sweep['theory']:g} | | | | | |\n"
    last = done[-1]
    time = exponent(done, axis, "seconds", FLOOR_SECONDS)
    memory = exponent(done, axis, "peak", FLOOR_BYTES)
    cells = [sweep["case"], axis, f"{sweep['theory']:g}"]
    cells += ["-", "-"] if time is None else [f"{time[0]:.2f}", f"{time[1]:.2f}"]
    cells += [f"{_number(last['seconds'])} ({last[axis]:,})"]
    cells += ["-" if memory is None else f"{memory[0]:.2f}", f"{last['peak'] / 1e6:,.0f}"]
    return "| " + " | ".join(cells) + " |\n"


def _copies(results: Figures) -> str:
    text = f"""## Nothing copies the table

The peak memory of a call beyond its input table, including its result, and as a share of the table's size. *Allowed* is
the share that the call needs; any call may use another {BLOCKS / 1e6:.0f} MB for blocks of rows.

| call | table | rows | features | table MB | peak above it MB | share | allowed | what it needs |
|---|---|---:|---:|---:|---:|---:|---:|---|
"""
    for copy in results["copies"]:
        cells = [copy["name"], copy["kind"], f"{copy['rows']:,}", f"{copy['features']:,}"]
        if "peak" in copy:
            share = copy["peak"] / copy["table"]
            mark = " (flagged)" if too_much(copy) else ""
            cells += [f"{copy['table'] / 1e6:,.0f}", f"{copy['peak'] / 1e6:,.0f}", f"{share:.2f}{mark}"]
        else:
            cells += ["", "", ""]
        text += "| " + " | ".join([*cells, f"{copy['limit']:.2f}", copy["expected"]]) + " |\n"
    return text + "\n"


def _points(results: Figures) -> str:
    text = "## All points\n\nSeconds, and in brackets MB above the table and the model.\n\n"
    for axis in dict.fromkeys(sweep["axis"] for sweep in results["sweeps"]):
        sweeps = [s for s in results["sweeps"] if s["axis"] == axis]
        values = sorted({p[axis] for s in sweeps for p in s["points"]})
        text += f"### {axis.capitalize()}\n\n| | at | " + " | ".join(f"{v:,}" for v in values) + " |\n"
        text += "|---|---|" + "---:|" * len(values) + "\n"
        for sweep in sweeps:
            by_value = {p[axis]: p for p in sweep["points"]}
            base = ", ".join(f"{v:,} {name}" for name, v in sweep["base"].items() if v)
            text += f"| {sweep['case']} | {base} | " + " | ".join(_point(by_value.get(v)) for v in values) + " |\n"
        ends = [f"- {s['case']}: {s['ended']}.\n" for s in sweeps if s["ended"]]
        text += "\n" + ("Ended early:\n\n" + "".join(ends) + "\n" if ends else "")
    return text


def _point(point: Figures | None) -> str:
    if point is None:
        return ""
    if "seconds" not in point:
        return "refused" if "failed" in point else "too long"
    return f"{_number(point['seconds'])} ({point['peak'] / 1e6:,.0f})"


def _number(seconds: float) -> str:
    return f"{seconds:.4f}" if seconds < 0.1 else f"{seconds:.2f}"
