"""The command that estimates all marginals."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tinybayes.cli._console import check_output, print_json, remark, suggest, watched_live
from tinybayes.cli._options import Json
from tinybayes.errors import error

if TYPE_CHECKING:
    from tinybayes.infer import Marginals
    from tinybayes.infer.sampling.methods import Model


def infer(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="A network or circuit (.uai, also MARKOV; .tb, .bif, ...) or .clauses"),
    ],
    evidence: Annotated[Path | None, typer.Option(help="A UAI evidence file; nothing is observed if none.")] = None,
    method: Annotated[
        str, typer.Option(help="tied, exact, slices, mcsat, gibbs, lw (likelihood weighting) or forward")
    ] = "tied",
    seconds: Annotated[
        float | None, typer.Option(help="Time to sample; 10 when --samples is not given either.")
    ] = None,
    samples: Annotated[int | None, typer.Option(help="Samples, or sweeps of all chains.")] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**64 - 1, help="With --samples, the same seed gives the same answer.")
    ] = 0,
    truth: Annotated[
        Path | None, typer.Option(help="A file of exact marginals (MAR): shows the Hellinger distance to them.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the marginals (MAR) there, instead of printing them.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Estimate the posterior of every variable of a model: UAI marginals on standard output, figures beside them."""
    from tinybayes.deploy.files.uai_marginals import format_marginals, read_marginals, write_marginals
    from tinybayes.infer import hellinger, marginals
    from tinybayes.infer.sampling.result import Budget
    from tinybayes.report.progress import sampling_progress

    if output is not None:
        check_output(output)
    if seconds is None and samples is None:
        seconds = 10.0
    Budget.start(seconds, samples)
    asked = read_any(model)
    known = _case(evidence)
    exact = None if truth is None else read_marginals(truth)
    variables = asked.variables if not hasattr(asked, "nodes") else asked.nodes
    if exact is not None and [len(part) for part in exact] != [variable.cardinality for variable in variables]:
        states = sum(variable.cardinality for variable in variables)
        expected = f"{len(variables)} variables with {states} states, as in {model.name}"
        raise error(expected, f"{len(exact)} with {sum(map(len, exact))}", where=str(truth))
    with sampling_progress(watched_live() and not as_json, seconds, samples) as progress:
        result = marginals(asked, known, method=method, seconds=seconds, samples=samples, seed=seed, progress=progress)
    distance = None
    if exact is not None:
        distance = hellinger(result.probabilities, exact, [v for v in range(len(exact)) if v not in known])
    if output is not None:
        write_marginals(result.probabilities, output)
    if as_json:
        print_json(_figures(result, distance, output is None), output)
        return
    if output is None:
        typer.echo(format_marginals(result.probabilities), nl=False)
    for line in _lines(result, distance):
        remark(line)
    if output is not None:
        remark(f"Wrote {output}.")
    if seconds is not None and not result.exact:
        remark(f"More time, less error: {suggest('infer', model, '--seconds', f'{10 * seconds:g}')}")


def read_any(path: Path) -> "Model":
    """Read whatever `marginals` can be asked about."""
    from tinybayes.deploy import read_joint
    from tinybayes.deploy.files.clauses import read_clauses
    from tinybayes.deploy.files.uai import read_uai_factors

    name = path.name.lower().removesuffix(".gz")
    if name.endswith(".uai"):
        return read_uai_factors(path)
    return read_clauses(path) if name.endswith(".clauses") else read_joint(path)


def _case(path: Path | None) -> dict[int, int]:
    from tinybayes.deploy.files.uai import read_evidence

    if path is None:
        return {}
    cases = read_evidence(path)
    if len(cases) != 1:
        raise error("one case", f"{len(cases)}", where=str(path), remedy="put each case into a file of its own")
    return cases[0]


def _figures(result: "Marginals", distance: float | None, listed: bool) -> dict[str, object]:
    names = ("method", "exact", "samples", "seconds", "effective", "log_z", "log_z_error", "zero", "notes")
    values: dict[str, object] = {name: getattr(result, name) for name in names}
    values |= {"largest_error": result.largest_error, "hellinger": distance}
    if listed:
        pairs = zip(result.variables, result.probabilities, strict=True)
        values["marginals"] = {variable.name: part.tolist() for variable, part in pairs}
    return values


def _lines(result: "Marginals", distance: float | None) -> list[str]:
    took = f"{result.seconds:.3g} s"
    if result.exact:
        lines = [f"Exact ({result.method}), {took}."]
    else:
        effective = f"worth {result.effective:,.0f} independent ones"
        lines = [f"{result.method}: {result.samples:,} samples in {took}, {effective}."]
        lines.append(f"Largest standard error: {result.largest_error:.3g}.")
    if result.log_z is not None:
        spread = f" (standard error {result.log_z_error:.3g})" if result.log_z_error else ""
        lines.append(f"log Z given the evidence: {result.log_z:.10g}{spread}.")
    lines += [f"Note: {note}." for note in result.notes]
    if distance is not None:
        lines.append(f"Mean Hellinger distance over the variables not observed: {distance:.3g}.")
    return lines
