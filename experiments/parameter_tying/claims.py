"""What *On Parameter Tying by Quantization* claims, as questions to our results."""

from collections.abc import Callable

from experiments.store import Record

Answer = tuple[bool, str] | None


def _relearned(r: Record) -> Record | None:
    """Return the exactly relearned models, or those with normalised rows where there are none."""
    relearned: Record | None = r["methods"].get("relearned") or r["methods"].get("relearned rows")
    return relearned


def less_error(r: Record) -> Answer:
    again, first = _relearned(r), r["mle"]["max error"]
    return None if again is None else (again["max error"] < first, f"{again['max error']:.4g} against {first:.4g}")


def same_error(r: Record) -> Answer:
    quantised = r["methods"].get("quantised") or r["methods"].get("quantised rows")
    if quantised is None:
        return None
    error, first = quantised["max error"], r["mle"]["max error"]
    return abs(error - first) <= 0.02 * first, f"{error:.4g} against {first:.4g}"


def better_than_mle(r: Record) -> Answer:
    again = _relearned(r)
    if again is None:
        return None
    best = max(again["path"], key=lambda point: point["gain"])
    error = best["spread"] or 0.0
    return best["gain"] > 2 * error, f"{best['gain']:+.4f} ± {error:.4f} at {best['levels']} levels"


def better_than_quantised(r: Record) -> Answer:
    again = _relearned(r)
    name = "quantised" if "relearned" in r["methods"] else "quantised rows"
    if again is None:
        return None
    small = [p for p in again["path"] if p["levels"] <= 16]
    other = {p["levels"]: p["test"] for p in r["methods"][name]["path"]}
    wins = sum(p["test"] >= other[p["levels"]] for p in small)
    return wins == len(small), f"{wins} of {len(small)} numbers of levels"


def near_true_levels(r: Record) -> Answer:
    again = _relearned(r)
    if again is None:
        return None
    ratio = again["chosen levels"] / r["true levels"]
    return 0.5 <= ratio <= 2, f"{again['chosen levels']:.0f} for {r['true levels']:,}"


CLAIMS: tuple[tuple[str, Callable[[Record], Answer]], ...] = (
    ("Relearned parameters have a smaller error than those of maximum likelihood.", less_error),
    ("Quantised parameters have about the same error as those of maximum likelihood (within 2 %).", same_error),
    ("With enough levels relearning has a better test likelihood than maximum likelihood.", better_than_mle),
    (
        "With few levels (16 at most) relearning improves the test likelihood of the quantised model.",
        better_than_quantised,
    ),
    (
        "The levels chosen on validation rows are near the true number, but for bn2o (within a factor of two).",
        near_true_levels,
    ),
)
