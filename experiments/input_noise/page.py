"""The section on input noise of docs/results.md."""

from pathlib import Path

from experiments.markdown import line, missing
from experiments.store import read_report
from experiments.sweep import read_sweeps

TEXT = """
## Input noise

Beyond the papers: in training, codes of ordered features move to a neighbouring bin with some probability
(`input_noise`; see [training by gradient](gradient.md)). Sweeps of `experiments/input_noise/tables.toml`, with
structure noise 0.1 and sharing 1 on letter. *Noise* is that of the setting chosen on validation rows. The last column
is the best of our sweeps for Table 1 with the same structure, without input noise, but with structure noise and sharing
where they helped; it was chosen on test rows.

| data | structure | epochs | runs | noise | chosen on validation rows | chosen on test rows | without noise |
|---|---|---:|---:|---:|---:|---:|---:|
"""
TAIL = """
On letter, a Chow-Liu tree with input noise makes fewer errors than every structure of the paper (best: 8.73). Errors
hardly depend on lambda and gamma any more, but fall with the number of epochs. Naive Bayes gains little: its tables
have enough rows.
"""
KERNELS = """
Which moves? Chow-Liu trees after 500 epochs, one setting each (`python -m experiments.input_noise.kernels`; satimage is
its first fold). *Reach* is the standard deviation of a move in bins, *next* a move to the next bin; *end* is the share
of the noise at the end of training. *Averaged* are tables averaged over the noise after training. Constant moves to the
next bin are as good as any, and averaging changes nothing beyond chance.

| data | noise | reach | end | test error | averaged |
|---|---:|---:|---:|---:|---:|
"""
NETS = """
### Neural networks

Dense networks of 6 bits on raw integers, with noise in the inputs and mixed rows (`experiments.input_noise.nets`). Test
errors of one seed; the better of two learning rates was chosen on test rows. The differences matter, not the level. Two
thirds of the rows are training rows.

| data | hidden | batch norm | mixup | noise 0 | 0.1 | 0.2 | 0.3 | 0.4 |
|---|---|---|---:|---:|---:|---:|---:|---:|
"""


def section(experiments: Path) -> str:
    """Return the table of what was run."""
    report = read_report(experiments / "input_noise" / "results" / "tables.json")
    if report is None:
        return missing(TEXT, "python -m experiments experiments/input_noise/tables.toml")
    sweeps = {sweep.name: sweep for sweep in read_sweeps(experiments / "input_noise" / "tables.toml")}
    table1 = read_report(experiments / "differentiable_tan" / "results" / "table1.json") or {"results": []}
    lines = []
    for result in report["results"]:
        chosen = result["chosen_on_validation"]
        before = [
            other["best_on_test"]["error"]
            for other in table1["results"]
            if (other["data"], other["structure"]) == (result["data"], result["structure"])
        ]
        lines.append(
            line(
                result["data"],
                result["row"],
                sweeps[result["sweep"]].epochs,
                result["runs"],
                f"{chosen['setting']['input_noise']:g}",
                f"{100 * chosen['error']:.2f}",
                f"{100 * result['best_on_test']['error']:.2f}",
                f"{100 * min(before):.2f}" if before and not chosen["setting"]["bits"] else "",
            )
        )
    return TEXT + "".join(lines) + TAIL + _kernels(experiments) + _nets(experiments)


def _kernels(experiments: Path) -> str:
    report = read_report(experiments / "input_noise" / "results" / "kernels.json")
    if report is None:
        return ""
    lines = []
    for run in report["results"]:
        reach = f"{run['noise_reach']:g}" if run["noise_reach"] else "next"
        errors = (f"{100 * run[name]:.2f}" for name in ("test_error", "averaged_error"))
        lines.append(line(run["data"], f"{run['input_noise']:g}", reach, f"{run['noise_end']:g}", *errors))
    return KERNELS + "".join(lines)


def _nets(experiments: Path) -> str:
    report = read_report(experiments / "input_noise" / "results" / "nets.json")
    if report is None:
        return ""
    rows: dict[tuple[str, ...], dict[float, float]] = {}
    for run in report["results"]:
        norm = "yes" if run["batch_norm"] else "no"
        key = run["data"], "x".join(map(str, run["hidden"])), norm, f"{run['mixup']:g}"
        errors = rows.setdefault(key, {})
        errors[run["input_noise"]] = min(run["error"], errors.get(run["input_noise"], 1.0))
    return NETS + "".join(line(*key, *(f"{100 * e:.2f}" for _, e in sorted(row.items()))) for key, row in rows.items())
