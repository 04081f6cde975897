"""Small dense nets in the compact form and with lanes, on emulated cores: python benchmarks/net_forms.py.

The nets are those of the calibration of prices (`price_programs`) that are compact by default, and nets of 13 floats,
as for vowel. Flash, instructions and stack of `predict_raw` are measured, and compared with the price. Needs Debian's
gcc-arm-none-eabi, libnewlib-arm-none-eabi and qemu-system-arm.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from harness import provenance
from price_programs import draw, rows_of

from tinybayes.deploy._price.counts import DIALECT, count_program
from tinybayes.deploy.measure import measure
from tinybayes.deploy.price import price
from tinybayes.deploy.programs.c import to_c
from tinybayes.deploy.programs.net_compact import compact_sums
from tinybayes.deploy.programs.plan import NetPlan, make_plan
from tinybayes.model import Dataset, Grid, NeuralNet, Variable
from tinybayes.search.skeletons import net_skeleton

RESULTS = Path(__file__).parent / "results" / "net_forms.json"
CORES = ("cortex-m0+", "cortex-m4")
DRAWN = 40
FIGURES = ("flash", "instructions", "stack")


def programs() -> Iterator[tuple[str, NeuralNet, dict[str, Any]]]:
    """Yield words, a net and the options of its export."""
    rng = np.random.default_rng(0)
    grids = [
        Grid(-(2.0**-4) * int(rng.integers(90)), 2.0 ** -int(rng.integers(4, 8)), int(rng.integers(66, 225)))
        for _ in range(13)
    ]
    grids = [Grid(round(g.start / g.step) * g.step, g.step, g.count) for g in grids]
    variables = tuple(Variable.from_encoding(f"x{i}", grid) for i, grid in enumerate(grids))
    rows = rng.integers(0, [g.count for g in grids], (200, 13)).astype(np.int32)
    data = Dataset(variables, Variable("class", tuple(range(11))), rows, rng.integers(0, 11, 200))
    for bits in (1, 2, 3, 4, 6, 8):
        for hidden in ((), (14,), (14, 14)):
            for activation in ("relu", "sign") if hidden else ("relu",):
                name = f"13 floats, {'-'.join(map(str, hidden)) or 'linear'}, {bits} bits, {activation}"
                yield name, net_skeleton(data, hidden, bits, activation, "standard"), {"raw": "float", "gaps": True}
    found = 0
    for seed in range(1000):
        model, options, words = draw(seed)
        if found < DRAWN and isinstance(model, NeuralNet):
            found += 1
            yield words, model, options


def main() -> None:
    """Measure, price and write everything."""
    results = []
    for words, net, options in programs():
        plan = make_plan(net, **options)
        assert isinstance(plan, NetPlan)
        if compact_sums(plan, DIALECT) is None:
            continue
        codes = rows_of(net.variables, 16, 1)
        result: dict[str, Any] = {"program": words}
        for form in ("compact", "lanes"):
            texts = to_c(net, name="net", extras=False, form=form, **options)
            counts = count_program(make_plan(net, form=form, **options))
            for core in CORES:
                rows = plan.features.values(codes)
                (found,) = measure(texts, "net", rows, raw=True, boards=[core.removeprefix("cortex-")])
                cost = price(counts, core)
                result[f"{form} {core}"] = {
                    "measured": {f: round(getattr(found, f)) for f in FIGURES},
                    "priced": {f: round(getattr(cost, f)) for f in FIGURES},
                }
        results.append(result)
        print(result, flush=True)
    summary = {core: _summary(results, core) for core in CORES}
    print(json.dumps(summary, indent=1))
    lines = ",\n".join(f"  {json.dumps(result)}" for result in results)
    head = json.dumps({"about": provenance(["numpy"]), "summary": summary}, indent=1).removesuffix("\n}")
    RESULTS.write_text(f'{head},\n "programs": [\n{lines}\n ]\n}}\n')


def _summary(results: list[dict[str, Any]], core: str) -> dict[str, Any]:
    """Compare the forms, and the prices of the compact one with its measurements."""
    compact, lanes = ([r[f"{form} {core}"] for r in results] for form in ("compact", "lanes"))
    saved = np.array([b["measured"]["flash"] - a["measured"]["flash"] for a, b in zip(compact, lanes, strict=True)])
    times = [b["measured"]["instructions"] / a["measured"]["instructions"] for a, b in zip(lanes, compact, strict=True)]
    out: dict[str, Any] = {"nets": len(results), "bytes saved": np.quantile(saved, [0, 0.5, 1]).round().tolist()}
    out["times the instructions"] = np.quantile(times, [0, 0.5, 1]).round(1).tolist()
    for figure in FIGURES:
        error = np.array([abs(c["priced"][figure] / c["measured"][figure] - 1) for c in compact])
        quantiles = {"median": np.median(error), "q95": np.quantile(error, 0.95), "largest": error.max()}
        out[f"error of {figure}"] = {name: round(float(value), 3) for name, value in quantiles.items()}
    return out


if __name__ == "__main__":
    main()
