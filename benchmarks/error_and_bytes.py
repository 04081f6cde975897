"""Draw test error against bytes of parameters, ours and EdgeML's: python benchmarks/error_and_bytes.py.

Ours are the fronts of the searches of `explore.py`: for each size the model with the smallest validation error, and its
test error. EdgeML's points are as its authors report them (ProtoNN and Bonsai, https://github.com/microsoft/EdgeML and
the papers of ICML 2017); their splits are others, and their mnist has 28x28 pixels where ours has 14x14.
"""

import json
from pathlib import Path
from typing import Any

from matplotlib import rc_context

from experiments.drawing import BLUE, ORANGE, STYLE, add_legend, log_errors, make_panels, save

ROOT = Path(__file__).parent.parent
FIGURE = ROOT / "docs" / "figures" / "error_and_bytes.svg"
THEIRS = {"letter": (63_000, 2.9), "mnist": (84_000, 3.0), "usps": (64_000, 5.1)}  # bytes, test error in percent


def stairs(models: list[dict[str, Any]]) -> list[tuple[int, float]]:
    """Return bytes and test errors in percent of the models with less validation error than all smaller ones."""
    best, steps = 1.0, []
    for model in sorted(models, key=lambda m: (m["bytes"], m["validation_error"])):
        if model["validation_error"] < best:
            best = model["validation_error"]
            steps.append((model["bytes"], 100 * model["test_error"]))
    return steps


def main() -> None:
    searches = json.loads((ROOT / "benchmarks" / "results" / "explore.json").read_text())
    with rc_context(STYLE):
        named = {name: [s for s in searches.values() if s.get("data") == name] for name in THEIRS}
        named = {name: found for name, found in named.items() if found}
        figure, panels = make_panels(len(named), legend_height=0.3)
        for panel, (name, found) in zip(panels, named.items(), strict=True):
            for search in found:
                points = [point for point in stairs(search["front"]) if point[1] < 30]
                panel.plot(*zip(*points, strict=True), ".-", color=BLUE, linewidth=1, label="tinybayes, a search each")
            panel.plot(*THEIRS[name], "D", color=ORANGE, label="EdgeML, as reported")
            panel.set(title=name, xscale="log", xlabel="bytes of parameters", ylabel="test error in percent")
            log_errors(panel)
        add_legend(figure, panels, columns=2)
        save(figure, FIGURE)


if __name__ == "__main__":
    main()
