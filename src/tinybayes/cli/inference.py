"""The command that answers UAI's tasks: all marginals, the probability of evidence, the most probable explanation."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tinybayes.cli._console import check_output, print_json, remark, suggest, watched_live
from tinybayes.cli._options import Json, given
from tinybayes.errors import error
from tinybayes.files import exists, is_directory, made_directory

if TYPE_CHECKING:
    import numpy as np

    from tinybayes.infer import Marginals
    from tinybayes.infer.sampling.methods import Model

TASKS = ("MAR", "PR", "MPE")
_SECONDS = 10.0  # of sampling, where no exact answer is within reach and no budget is given


def infer(
    context: typer.Context,
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="A network or circuit (.uai, also MARKOV; .tb, .bif, ...) or .clauses"),
    ],
    evidence: Annotated[
        list[Path] | None,
        typer.Option(help="A UAI evidence file, or several: repeat the option. Nothing is observed if none."),
    ] = None,
    task: Annotated[
        str,
        typer.Option(help="MAR: all posteriors; PR: log10 of the probability of the evidence; MPE: the best states."),
    ] = "MAR",
    method: Annotated[
        str,
        typer.Option(
            help="auto, join-tree, circuit or exact; tied, slices, mcsat, gibbs, lw (likelihood weighting) or forward"
        ),
    ] = "auto",
    seconds: Annotated[
        float | None, typer.Option(help="Time for the answer; sampling takes 10 if nothing is given.")
    ] = None,
    samples: Annotated[int | None, typer.Option(help="Samples, or sweeps of all chains.")] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**64 - 1, help="With --samples, the same seed gives the same answer.")
    ] = 0,
    truth: Annotated[
        Path | None, typer.Option(help="A file of exact marginals (MAR): shows the Hellinger distance to them.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="Write the answer there instead of printing it; for several, a directory: EVIDENCE.MAR and so on.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Answer one of UAI's tasks exactly where possible: the answer on standard output, figures beside it."""
    from tinybayes.infer.sampling.result import Budget

    task = task.upper()
    if task not in TASKS:
        raise error(" or ".join(TASKS), repr(task), where="--task")
    if task != "MAR" and (unused := given(context, "method", "seconds", "samples", "seed")):
        remedy = f"leave it out: {task} is answered exactly"
        raise error("--task MAR", task, where=unused[0], remedy=remedy)
    Budget.start(seconds, samples)
    cases = _cases(evidence or [])
    several = len(cases) > 1
    if output is not None:
        _check_place(output, several)
    if truth is not None and (several or task != "MAR"):
        raise error("one evidence file and --task MAR", f"{len(cases)} and {task}", where="--truth")
    asked = read_any(model)
    exact = None if truth is None else _truth(truth, asked, model)
    question = _Question(asked, task, method, seconds, samples, seed, watched_live() and not as_json)
    listed: list[dict[str, object]] = []
    for name, known in cases:
        answer = question.answer(known)
        distance = None if exact is None or answer.result is None else _distance(answer.result, exact, known)
        place = output / f"{name}.{task}" if several and output is not None else output
        if place is not None:
            from tinybayes.deploy.files.network_text import write_text

            write_text(place, [answer.text])
        if as_json:
            listed.append(answer.figures(distance, place is None) | ({"evidence": name} if several else {}))
            continue
        if place is None:
            typer.echo(answer.text, nl=False)
        for line in answer.lines(distance):
            remark(f"{name}: {line}" if several else line)
        if place is not None:
            remark(f"Wrote {place}.")
        if answer.result is not None and not answer.result.exact and seconds is not None:
            remark(f"More time, less error: {suggest('infer', model, '--seconds', f'{10 * seconds:g}')}")
    if as_json:
        print_json({"cases": listed} if several else listed[0], output)


@dataclass(frozen=True)
class _Answer:
    """An answer as UAI text, and the figures beside it."""

    text: str
    log_z: float | None
    values: dict[str, object]
    result: "Marginals | None" = None

    def figures(self, distance: float | None, listed: bool) -> dict[str, object]:
        """Return the figures for machines."""
        return self.values if self.result is None else _figures(self.result, distance, listed)

    def lines(self, distance: float | None) -> list[str]:
        """Return the figures for people."""
        if self.result is not None:
            return _lines(self.result, distance)
        return [f"Exact, natural logarithm {self.log_z:.10g}."]


@dataclass(frozen=True)
class _Question:
    """What is asked about every case."""

    model: "Model"
    task: str
    method: str
    seconds: float | None
    samples: int | None
    seed: int
    shown: bool

    def answer(self, known: dict[int, int]) -> _Answer:
        """Answer one case, with a line of progress where someone looks."""
        from tinybayes.report.progress import inference_progress

        with inference_progress(self.shown, self.seconds, self.samples) as progress:
            if self.task == "MAR":
                return self._marginals(known, progress)
            return self._probability(known, progress) if self.task == "PR" else self._best(known, progress)

    def _marginals(self, known: dict[int, int], progress: Callable[[Any], None] | None) -> _Answer:
        from tinybayes.deploy.files.uai_marginals import format_marginals
        from tinybayes.infer import marginals
        from tinybayes.infer.join.limits import TooLargeError

        ask = partial(marginals, self.model, known, samples=self.samples, seed=self.seed, progress=progress)
        unlimited = self.seconds is None and self.samples is None
        sampled = unlimited and self.method not in ("auto", "exact", "join-tree")
        try:
            result = ask(method=self.method, seconds=_SECONDS if sampled else self.seconds)
        except TooLargeError as problem:
            if self.method != "auto":
                raise
            remark(f"Sampling for {_SECONDS:g} s, since no exact answer is within reach: {problem}.")
            result = ask(seconds=_SECONDS)
        return _Answer(format_marginals(result.probabilities), None, {}, result)

    def _probability(self, known: dict[int, int], progress: Callable[[Any], None] | None) -> _Answer:
        import math

        from tinybayes.infer import log_evidence, log_z
        from tinybayes.model import Circuit

        if isinstance(self.model, Circuit):
            value = float(log_evidence(self.model, _row(self.model, known))[0])
        else:
            value = log_z(self.model, known, progress=progress)
        return _Answer(f"PR\n{value / math.log(10)!r}\n", value, {"task": "PR", "log_z": value})

    def _best(self, known: dict[int, int], progress: Callable[[Any], None] | None) -> _Answer:
        from tinybayes.infer import most_probable, mpe
        from tinybayes.model import Circuit

        if isinstance(self.model, Circuit):
            rows, logs = most_probable(self.model, _row(self.model, known))
            row, value = rows[0], float(logs[0])
        else:
            found = mpe(self.model, known, progress=progress)
            row, value = found.row, found.log_probability
        text = f"MPE\n{' '.join(map(str, [len(row), *row.tolist()]))}\n"
        return _Answer(text, value, {"task": "MPE", "log_probability": value, "states": row.tolist()})


def _row(model: Any, known: dict[int, int]) -> "np.ndarray":
    import numpy as np

    from tinybayes.infer.sampling.problem import observed

    row = np.full((1, len(model.nodes)), -1)
    for v, state in observed(model.nodes, known).items():
        row[0, v] = state
    return row


def _check_place(output: Path, several: bool) -> None:
    if not several:
        check_output(output)
    elif not is_directory(output):
        if output.suffix or exists(output):
            raise error("a directory", str(output), where="--output", remedy="several answers need one; it may be new")
        made_directory(output)


def read_any(path: Path) -> "Model":
    """Read whatever `marginals` can be asked about."""
    from tinybayes.deploy import read_joint
    from tinybayes.deploy.files.clauses import read_clauses
    from tinybayes.deploy.files.uai import read_uai_factors

    name = path.name.lower().removesuffix(".gz")
    if name.endswith(".uai"):
        return read_uai_factors(path)
    return read_clauses(path) if name.endswith(".clauses") else read_joint(path)


def _cases(paths: list[Path]) -> list[tuple[str, dict[int, int]]]:
    """Return the cases of all files, each with a name of its own; nothing is observed where there are no files."""
    from tinybayes.deploy.files.uai import read_evidence

    if not paths:
        return [("", {})]
    cases: list[tuple[str, dict[int, int]]] = []
    for path in paths:
        name = path.name.removesuffix(".gz").removesuffix(".evid")
        own = read_evidence(path)
        cases += [(name if len(own) == 1 else f"{name}.{number}", known) for number, known in enumerate(own, 1)]
    repeated = next((name for name, count in Counter(name for name, _ in cases).items() if count > 1), None)
    if repeated is not None:
        raise error("evidence files with different names", repr(repeated), where="--evidence")
    return cases


def _truth(path: Path, asked: "Model", model: Path) -> "tuple[np.ndarray, ...]":
    from tinybayes.deploy.files.uai_marginals import read_marginals

    exact = read_marginals(path)
    variables = asked.variables if not hasattr(asked, "nodes") else asked.nodes
    if [len(part) for part in exact] != [variable.cardinality for variable in variables]:
        states = sum(variable.cardinality for variable in variables)
        expected = f"{len(variables)} variables with {states} states, as in {model.name}"
        raise error(expected, f"{len(exact)} with {sum(map(len, exact))}", where=str(path))
    return exact


def _distance(result: "Marginals", exact: "tuple[np.ndarray, ...]", known: dict[int, int]) -> float:
    from tinybayes.infer import hellinger

    return hellinger(result.probabilities, exact, [v for v in range(len(exact)) if v not in known])


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
