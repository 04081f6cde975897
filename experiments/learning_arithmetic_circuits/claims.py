"""What *Learning Arithmetic Circuits* claims, as questions to our results. No choice used test rows."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from experiments.store import Record
from experiments.verdicts import Answer, Claim

ALIKE = 0.01  # the share by which log-likelihoods may differ that are called very similar
TABLES = ("kdd", "msweb", "tmovie")  # stand for the paper's three data sets


@dataclass(frozen=True)
class Results:
    """The growths, the models that were chosen of them (Table 4) and the queries (Table 5, Figure 1)."""

    grown: Sequence[Record]
    models: Sequence[Record]
    queries: Sequence[Record]

    def model(self, data: str, learner: str) -> Record | None:
        return next((m for m in self.models if (m["data"], m["learner"]) == (data, learner)), None)

    def pairs(self, one: str, other: str) -> Iterator[tuple[str, Record, Record]]:
        """Yield the chosen models of two learners that both ended by themselves."""
        for data in dict.fromkeys(m["data"] for m in self.models):
            a, b = self.model(data, one), self.model(data, other)
            if a is not None and b is not None and a["complete"] and b["complete"]:
                yield data, a, b

    def same_prices(self) -> Iterator[tuple[str, list[tuple[Record, Record]]]]:
        """Yield the growths of quick and greedy with the same prices that both ended by themselves, a set at a time."""
        keys = ("data", "edge_price", "parameter_price")
        ended = [g for g in self.grown if g["complete"]]
        quick = {tuple(g[k] for k in keys): g for g in ended if g["learner"] == "quick"}
        greedy = {tuple(g[k] for k in keys): g for g in ended if g["learner"] == "greedy"}
        for data in dict.fromkeys(key[0] for key in greedy):
            pairs = [(quick[key], run) for key, run in greedy.items() if key[0] == data and key in quick]
            if pairs:
                yield data, pairs

    def times(self, data: str, setting: str, field: str = "cpu_ms") -> float | None:
        """Return the mean time of a query in milliseconds."""
        own = [q[field] for q in self.queries if (q["data"], q["setting"]) == (data, setting)]
        return sum(own) / len(own) if own else None


def as_likely(r: Results) -> Iterator[Answer]:
    for data, circuit, trees in r.pairs("quick", "trees"):
        text = f"{data} {circuit['test']:.3f}, trees {trees['test']:.3f}"
        yield abs(circuit["test"] - trees["test"]) <= ALIKE * abs(trees["test"]), text


def slight_edge(r: Results) -> Iterator[Answer]:
    for data, circuit, trees in r.pairs("quick", "trees"):
        yield trees["test"] > circuit["test"], f"{data} {trees['test'] - circuit['test']:+.3f}"


def quick_as_good(r: Results) -> Iterator[Answer]:
    for data, pairs in r.same_prices():
        worst = max(abs(quick["test"] / greedy["test"] - 1) for quick, greedy in pairs)
        yield worst <= ALIKE, f"{data} at most {100 * worst:.2f} % apart at {len(pairs)} prices"


def quick_faster(r: Results) -> Iterator[Answer]:
    """Compare all growths of a data set together: times of single ones may be too short to measure."""
    for data, pairs in r.same_prices():
        quick, greedy = (sum(pair[k]["seconds"] for pair in pairs) for k in (0, 1))
        text = f"{data} {greedy / max(quick, 0.01):.1f} times ({quick:.1f} and {greedy:.1f} s at {len(pairs)} prices)"
        yield greedy >= 3 * quick, text


def trees_faster(r: Results) -> Iterator[Answer]:
    for data in dict.fromkeys(m["data"] for m in r.models):
        circuit, trees = r.model(data, "quick"), r.model(data, "trees")
        if circuit is not None and trees is not None:
            text = f"{data} {trees['seconds']:.2f} s against {circuit['seconds']:.2f} s"
            yield trees["seconds"] < circuit["seconds"] / 2, text


def low_edge_price(r: Results) -> Iterator[Answer]:
    for model in r.models:
        if model["learner"] == "quick":
            yield 0.01 <= model["edge_price"] <= 0.02, f"{model['data']} {model['edge_price']:g}"


def parameter_prices(r: Results) -> Iterator[Answer]:
    for data, wanted in (("kdd", 0.0), ("msweb", 0.5), ("tmovie", 0.5)):
        model = r.model(data, "quick")
        if model is not None:
            yield model["parameter_price"] == wanted, f"{data} {model['parameter_price']:g}, paper {wanted:g}"


def smaller_than_compiled(r: Results) -> Iterator[Answer]:
    for model in r.models:
        if model["learner"] == "trees" and (circuit := r.model(model["data"], "quick")) is not None:
            compiled = model["compiled_edges"]
            shown = compiled if isinstance(compiled, str) else f"{compiled:,}"
            smaller = isinstance(compiled, str) or circuit["edges"] < compiled
            yield smaller, f"{model['data']} {circuit['edges']:,} edges, trees compiled {shown}"


def large_width(r: Results) -> Iterator[Answer]:
    widths = {m["data"]: m["treewidth"] for m in r.models if m["learner"] == "quick"}
    if widths:
        text = ", ".join(f"{data} {width}" for data, width in widths.items())
        yield max(widths.values()) >= 40, f"min-fill widths {text}"


def faster(setting: str, times: float) -> Callable[[Results], Iterator[Answer]]:
    """Ask whether circuits, asked one query at a time, are that many times as fast as a setting of Gibbs sampling."""

    def ask(r: Results) -> Iterator[Answer]:
        for data in TABLES:
            circuit, gibbs = r.times(data, "exact", "alone_ms"), r.times(data, setting)
            if circuit is not None and gibbs is not None:
                ratio = gibbs / circuit
                yield ratio >= times, f"{data} {ratio:,.0f} times ({circuit:.2g} and {gibbs:,.3g} ms)"

    return ask


def more_accurate(*, few: bool) -> Callable[[Results], Iterator[Answer]]:
    """Compare circuits with each Gibbs setting, at 10 % queried variables or at more."""

    def ask(r: Results) -> Iterator[Answer]:
        key = ("data", "query", "evidence")
        exact = {tuple(q[k] for k in key): q["accuracy"] for q in r.queries if q["setting"] == "exact"}
        for data in TABLES:
            for setting in ("fast", "medium", "slow", "very slow"):
                own = [q for q in r.queries if (q["data"], q["setting"]) == (data, setting) and q["queries"] >= 5]
                own = [q for q in own if (q["query"] <= 0.1) == few and tuple(q[k] for k in key) in exact]
                if own:
                    wins = sum(exact[tuple(q[k] for k in key)] > q["accuracy"] for q in own)
                    yield wins == len(own), f"{data}, {setting}: {wins} of {len(own)} shares"

    return ask


def dominated(r: Results) -> Iterator[Answer]:
    for holds, text in more_accurate(few=True)(r):
        yield not holds, text


_TABLE4, _TABLE5 = ("Table 4", "table-4-the-models"), ("Table 5", "table-5-time-of-a-query")
_FIGURE1 = ("Figure 1", "figure-1-accuracy-of-queries")
CLAIMS: tuple[Claim[Results], ...] = tuple(
    Claim(section, text, ask, figure)
    for section, figure, text, ask in (
        ("5", _TABLE4, "Circuits and tree networks have very similar test likelihoods (1 %).", as_likely),
        ("5", _TABLE4, "Tree networks have a slight edge.", slight_edge),
        ("5", _TABLE4, "Quick circuits are as likely as greedy ones of the same prices (1 %).", quick_as_good),
        ("4, 5", _TABLE4, "Quick takes up to an order of magnitude less time (at least 3 times).", quick_faster),
        ("5", _TABLE4, "Tree networks are learned much faster than circuits (twice).", trees_faster),
        ("5", _TABLE4, "Validation rows choose a price of an edge of 0.01 or 0.02.", low_edge_price),
        ("5", _TABLE4, "They choose prices of a parameter of 0 (kdd) and 0.5 (quick, others).", parameter_prices),
        ("1, 5", _TABLE4, "Circuits have fewer edges than tree networks compiled afterwards.", smaller_than_compiled),
        ("1, 5", _TABLE4, "Models of very large treewidth stay tractable (40 or more).", large_width),
        ("5", _TABLE5, "Circuits are an order of magnitude faster than the fastest Gibbs setting.", faster("fast", 10)),
        ("5", _TABLE5, "Four orders of magnitude faster than the slowest.", faster("very slow", 10_000)),
        (
            "1, 5, 6",
            _FIGURE1,
            "More accurate than every Gibbs setting, if 20 % or more are queried.",
            more_accurate(few=False),
        ),
        ("5", _FIGURE1, "Not so when very few variables (10 %) are queried.", dominated),
    )
)
