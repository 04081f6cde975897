"""The page of `circuit_inference.py`: its figures as tables, and what they say about the claims."""

from collections.abc import Iterator

from harness import Figures

TITLES = {"one": "One thread, CPU time", "all": "All cores, by the clock"}
ENGINES = ("LazyPropagation", "ShaferShenoy", "VariableElimination")
FACTOR = 3.0  # that an estimate may be off


def markdown(result: Figures, batch: int) -> str:
    about, runs = result["provenance"], result["runs"]
    kinds = [threads for threads in TITLES if all(threads in run for run in runs)]
    lines = [
        "# Exact inference by circuits and join trees",
        "",
        "Written by `benchmarks/circuit_inference.py` from `circuit_inference.json`. Every query observes 20 % of the",
        "variables, with values from a forward sample, and asks for the posteriors of all. Milliseconds a query:",
        "",
        "- *tree*: a model that was asked before, new evidence. *first*: the first query to a new model.",
        f"- *rows*: a join tree for each of {batch:,} rows in one call; *alike*: the same variables observed in all.",
        "- *circuit*: compiled once, where it has at most 5,000,000 edges, asked one at a time;",
        f"  *batch*: {batch:,} rows in one call.",
        "- pyAgrum's engines are made once and asked with new evidence; *first* makes the engine, too, but not the",
        "  network.",
        "- *times*: how many times as fast as the fastest engine of pyAgrum.",
        "",
        f"- {about['date']}, `{about['command']}`, commit {about['commit']}",
        f"- {about['cpu']}, {about['cores']} cores, {about['system']}, load {about['load_before']:.2f} before and "
        f"{about['load_after']:.2f} after",
        f"- Python {about['python']}, {', '.join(f'{k} {v}' for k, v in about['packages'].items())}",
        "",
        *_claims(result, kinds),
    ]
    for threads in kinds:
        lines += [
            "",
            f"## {TITLES[threads]}",
            "",
            "| network | width | tree ms | Lazy ms | Shafer ms | Elimination ms | times, tree | first ms "
            "| pyAgrum first ms | rows ms | alike ms | largest difference |",
            "|---|" + "---:|" * 11,
            *(_tree_row(run, run[threads]) for run in runs),
            "",
            "| network | edges | compile CPU s | circuit ms | times, circuit | batch ms | times, batch | up ns "
            "| down ns |",
            "|---|" + "---:|" * 8,
            *(_circuit_row(run, run[threads]) for run in runs if "edges" in run),
        ]
    lines += [
        "",
        "Nanoseconds are for an edge, a row and a pass of the batches.",
        "",
        "## Networks that no circuit of 50,000,000 edges holds",
        "",
        "The time of `marginals`, which makes and calibrates the join tree on all cores: by the clock, and CPU time",
        "of all threads. The estimate is by the clock of an idle machine. The truth has six digits.",
        "",
        "| network | variables | width | method | s | CPU s | estimate s | peak GB | estimate GB "
        "| largest difference |",
        "|---|---:|---:|---|" + "---:|" * 6,
        *(
            f"| {run['network']} | {run['variables']} | {run['width']} | {run['method']} | {run['seconds']:.1f} "
            f"| {run['cpu_s']:.1f} "
            f"| {run['estimate_s']:.1f} | {run['gigabytes']:.2f} | {run['estimate_gigabytes']:.2f} "
            f"| {run['largest_difference']:.1e} |"
            for run in result["hard"]
        ),
        "",
        "## Estimates",
        "",
        "What `inference_costs` says without evidence, and what it took: all marginals by a join tree, compiling a",
        "circuit (CPU time), and 20,000 samples.",
        "",
        "| network | threads | way | estimate s | s | ratio |",
        "|---|---|---|---:|---:|---:|",
        *(
            f"| {network} | {threads} | {way} | {guess:.3g} | {seconds:.3g} | {guess / seconds:.2f} |"
            for network, threads, way, guess, seconds in estimates(result, kinds)
        ),
    ]
    return "\n".join(lines) + "\n"


def estimates(result: Figures, kinds: list[str]) -> Iterator[tuple[str, str, str, float, float]]:
    """Yield all estimates: network, threads, way, the estimate and what it took."""
    for run in result["runs"]:
        if "compile_s" in run:
            yield run["network"], "one", "circuit", run["compile_estimate_s"], run["compile_s"]
        for threads in kinds:
            found = run[threads]
            yield run["network"], threads, "join-tree", found["whole_estimate_s"], found["whole_s"]
            yield run["network"], threads, "tied", found["sampling_estimate_s"], found["sampling_s"]
    for run in result["hard"]:
        yield run["network"], "all", "join-tree", run["estimate_s"], run["seconds"]


def _claims(result: Figures, kinds: list[str]) -> list[str]:
    lines = []
    for threads in kinds:
        slower = [run["network"] for run in result["runs"] if run[threads]["times_tree"] < 1]
        first = [run["network"] for run in result["runs"] if run[threads]["times_first"] < 1]
        lines.append(
            f"- {TITLES[threads]}: of {len(result['runs'])} networks, slower than the fastest engine of pyAgrum: "
            f"{', '.join(slower) or 'none'}; in the first query: {', '.join(first) or 'none'}."
        )
    ratios: dict[str, list[float]] = {}
    for _, _, way, guess, seconds in estimates(result, kinds):
        ratios.setdefault(way, []).append(max(guess / seconds, seconds / guess))
    parts = [f"{way} {sum(r <= FACTOR for r in each)} of {len(each)}" for way, each in ratios.items()]
    lines.append(f"- Estimates within a factor of {FACTOR:g}: {', '.join(parts)}.")
    over = [run["network"] for run in result["hard"] if run["seconds"] > 60 or run["gigabytes"] > 12]
    if result["hard"]:
        far = max(run["largest_difference"] for run in result["hard"])
        lines.append(
            f"- Hard networks beyond 60 s or 12 GB: {', '.join(over) or 'none'}; largest difference to their marginals "
            f"{far:.1e}."
        )
    return lines


def _milliseconds(engine: Figures, key: str = "one_ms") -> str:
    if key in engine:
        return f"{engine[key]:.2f}"
    return f"> {engine['over_ms']:.0f}" if "over_ms" in engine else "-"


def _tree_row(run: Figures, found: Figures) -> str:
    engines = [found[engine] for engine in ENGINES]
    difference = max(engine["largest_difference"] for engine in engines)
    times = " | ".join(map(_milliseconds, engines))
    first = min((engine["first_ms"] for engine in engines if "first_ms" in engine), default=float("nan"))
    return (
        f"| {run['network']} | {run['width']} | {found['tree_ms']:.3f} | {times} | {found['times_tree']:.1f} "
        f"| {found['first_ms']:.2f} | {first:.2f} | {found['rows_ms']:.3f} | {found['alike_ms']:.3f} "
        f"| {difference:.1e} |"
    )


def _circuit_row(run: Figures, found: Figures) -> str:
    return (
        f"| {run['network']} | {run['edges']:,} | {run['compile_s']:.2f} | {found['one_ms']:.3f} "
        f"| {found['times_one']:.1f} | {found['batch_ms']:.4f} | {found['times_batch']:.0f} "
        f"| {found['up_ns_edge']:.3f} | {found['down_ns_edge']:.3f} |"
    )
