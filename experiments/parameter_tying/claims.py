"""What *On Parameter Tying by Quantization* claims, as questions to our results."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from experiments.store import Record
from experiments.verdicts import Answer, Claim

NETWORKS = ("bn2o", "students", "grid", "friends-7", "friends")


@dataclass(frozen=True)
class Results:
    """Sums of Table 1 and Figure 1, the single sets that they come from, Figure 2, and its runs of a minute."""

    learned: Sequence[Record]
    sets: Sequence[Record]
    sampled: Sequence[Record]
    long: Sequence[Record]

    def networks(self) -> Iterator[Record]:
        """Yield the sums by network and by how zeros were dealt with."""
        for network in NETWORKS:
            for zeros in ("smoothed", "smoothed, exact", "known"):
                yield from (r for r in self.learned if (r["network"], r["zeros"]) == (network, zeros))

    def by_model(self, runs: Sequence[Record], kind: str) -> dict[tuple[str, int | None], dict[str, float]]:
        """Return the mean distances of each method on the models of a kind, by network and levels."""
        cases: dict[tuple[str, int | None], dict[str, list[float]]] = {}
        for r in runs:
            if r["model"].startswith(kind) and "failed" not in r:
                methods = cases.setdefault((r["network"], r["levels"]), {})
                methods.setdefault(r["method"], []).append(r["hellinger"])
        return {case: {m: sum(d) / len(d) for m, d in methods.items()} for case, methods in cases.items()}


def each(ask: Callable[[Record], Answer | None]) -> Callable[[Results], Iterator[Answer]]:
    """Ask something of every network."""

    def all_networks(results: Results) -> Iterator[Answer]:
        for r in results.networks():
            answer = ask(r)
            if answer is not None:
                rows = "" if "relearned" in r["methods"] or "quantised" in r["methods"] else ", by rows"
                yield answer[0], f"{r['network']}, zeros {r['zeros']}{rows}: {answer[1]}"

    return all_networks


def _relearned(r: Record) -> Record | None:
    """Return the exactly relearned models, or those with normalised rows where there are none."""
    relearned: Record | None = r["methods"].get("relearned") or r["methods"].get("relearned rows")
    return relearned


def less_error(r: Record) -> Answer | None:
    again, first = _relearned(r), r["mle"]["max error"]
    return None if again is None else (again["max error"] < first, f"{again['max error']:.4g} against {first:.4g}")


def same_error(r: Record) -> Answer | None:
    quantised = r["methods"].get("quantised") or r["methods"].get("quantised rows")
    if quantised is None:
        return None
    error, first = quantised["max error"], r["mle"]["max error"]
    return abs(error - first) <= 0.02 * first, f"{error:.4g} against {first:.4g}"


def better_than_mle(r: Record) -> Answer | None:
    again = _relearned(r)
    if again is None:
        return None
    best = max(again["path"], key=lambda point: point["gain"])
    error = best["spread"] or 0.0
    return best["gain"] > 2 * error, f"{best['gain']:+.4f} ± {error:.4f} at {best['levels']} levels"


def better_than_quantised(r: Record) -> Answer | None:
    again = _relearned(r)
    name = "quantised" if "relearned" in r["methods"] else "quantised rows"
    if again is None:
        return None
    small = [p for p in again["path"] if p["levels"] <= 16]
    other = {p["levels"]: p["test"] for p in r["methods"][name]["path"]}
    wins = sum(p["test"] >= other[p["levels"]] for p in small)
    return wins == len(small), f"{wins} of {len(small)} numbers of levels"


def near_true_levels(r: Record) -> Answer | None:
    again = _relearned(r)
    if again is None:
        return None
    ratio = again["chosen levels"] / r["true levels"]
    holds = ratio < 0.5 if r["network"] == "bn2o" else 0.5 <= ratio <= 2
    return holds, f"{again['chosen levels']:.0f} for {r['true levels']:,}"


def less_error_than_quantised(r: Record) -> Answer | None:
    again, tied = _relearned(r), r["methods"].get("quantised") or r["methods"].get("quantised rows")
    if again is None or tied is None:
        return None
    return again["max error"] < tied["max error"], f"{again['max error']:.4g} against {tied['max error']:.4g}"


def quantised_beats_untied(r: Record) -> Answer | None:
    tied = r["methods"].get("quantised") or r["methods"].get("quantised rows")
    if tied is None:
        return None
    gain = tied["chosen"]["gain"]
    return gain > 0, f"{gain:+.4f}"


def tends_to_mle(r: Record) -> Answer | None:
    tied = r["methods"].get("quantised") or r["methods"].get("quantised rows")
    if tied is None:
        return None
    last = tied["path"][-1]
    return abs(last["gain"]) < 0.01, f"{last['gain']:+.4f} at {last['levels']} levels"


def theorem1(results: Results) -> Iterator[Answer]:
    """Compare the fall of the likelihood of the training rows with the bound."""
    for network in NETWORKS:
        falls = [
            (r["mle"]["train"] - t["quantised"]["train"], t["bound"])
            for r in results.sets
            for t in r["ties"]
            if r["network"] == network and t["quantised"]
        ]
        if falls:
            kept, share = sum(fall <= bound + 1e-6 for fall, bound in falls), max(fall / bound for fall, bound in falls)
            yield kept == len(falls), f"{network}: in {kept:,} of {len(falls):,} ties, at most {share:.2g} of the bound"


def proposition1(results: Results) -> Iterator[Answer]:
    for network in NETWORKS:
        pairs = [
            (t[again]["train"], t[tied]["train"])
            for r in results.sets
            for t in r["ties"]
            for again, tied in (("relearned", "quantised"), ("relearned rows", "quantised rows"))
            if r["network"] == network and t[again] and t[tied]
        ]
        if pairs:
            kept = sum(after >= before - 1e-6 for after, before in pairs)
            yield kept == len(pairs), f"{network}: in {kept:,} of {len(pairs):,} relearnings"


def alike(results: Results) -> Iterator[Answer]:
    for (network, _), found in results.by_model(results.long, "untied").items():
        if {"tied, drawn", "mcsat"} <= found.keys():
            own, other = found["tied, drawn"], found["mcsat"]
            yield 0.5 <= own / max(other, 1e-12) <= 2, f"{network}: {own:.2g} and {other:.2g}"


def beats(*others: str, runs: str) -> Callable[[Results], Iterator[Answer]]:
    """Ask whether the tied sampler is nearer to the exact marginals of relearned models than other methods."""

    def ask(results: Results) -> Iterator[Answer]:
        for (network, levels), found in results.by_model(getattr(results, runs), "relearned").items():
            if {"tied, drawn", *others} <= found.keys():
                own, rest = found["tied, drawn"], ", ".join(f"{m} {found[m]:.2g}" for m in others)
                yield own < min(found[m] for m in others), f"{network}, {levels} levels: {own:.2g}, {rest}"

    return ask


def ties_help(results: Results) -> Iterator[Answer]:
    untied, tied = results.by_model(results.long, "untied"), results.by_model(results.long, "relearned")
    for (network, levels), found in tied.items():
        before = untied.get((network, None), {})
        if "tied, drawn" in found and "tied, drawn" in before:
            own, other = found["tied, drawn"], before["tied, drawn"]
            yield own < other, f"{network}: {own:.2g} with {levels} levels, untied {other:.2g}"


_TABLE1 = ("Table 1", "table-1-levels-and-errors")
_FIGURE1 = ("Figure 1", "figure-1-test-log-likelihood-over-the-number-of-levels")
_FIGURE2 = ("Figure 2", "figure-2-samplers-on-tied-models")
_MINUTE = ("a minute", "untied-models-smoothed-zeros-a-minute-a-method")
CLAIMS: tuple[Claim[Results], ...] = tuple(
    Claim(section, text, ask, figure)
    for section, figure, text, ask in (
        ("Theorem 1", _FIGURE1, "The mean log-likelihood falls by at most 2 m eps.", theorem1),
        ("Proposition 1", _FIGURE1, "Relearning never lowers the likelihood of the training rows.", proposition1),
        (
            "Abstract",
            _FIGURE1,
            "With the levels chosen, quantising often has a higher test likelihood than no ties.",
            each(quantised_beats_untied),
        ),
        (
            "Learning",
            _FIGURE1,
            "With enough levels relearning has a higher one than maximum likelihood.",
            each(better_than_mle),
        ),
        ("Learning", _FIGURE1, "With few levels (16) relearning improves on quantising.", each(better_than_quantised)),
        ("Learning", _FIGURE1, "With many levels quantising tends to maximum likelihood (0.01).", each(tends_to_mle)),
        (
            "Learning",
            _TABLE1,
            "The levels chosen are near the true number (factor 2); far fewer on bn2o.",
            each(near_true_levels),
        ),
        ("Learning", _TABLE1, "Relearned parameters err less than those of maximum likelihood.", each(less_error)),
        ("Learning", _TABLE1, "They err less than quantised ones.", each(less_error_than_quantised)),
        ("Learning", _TABLE1, "Quantised parameters err as those of maximum likelihood (2 %).", each(same_error)),
        ("Inference", _MINUTE, "Untied, the tied sampler and MC-SAT are alike (factor 2).", alike),
        (
            "Inference",
            _FIGURE2,
            "Relearned, the tied sampler beats MC-SAT and Gibbs sampling.",
            beats("mcsat", "gibbs", runs="sampled"),
        ),
        ("Inference", _MINUTE, "The same in a minute, zeros smoothed.", beats("mcsat", "gibbs", runs="long")),
        ("Inference", _MINUTE, "Tied models give better estimates than untied ones.", ties_help),
        (
            "ours",
            _FIGURE2,
            "It also beats likelihood weighting, which the paper leaves out.",
            beats("lw", runs="sampled"),
        ),
    )
)
