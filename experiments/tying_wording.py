"""The text of the page on parameter tying, the paper's numbers, and its claims as questions to ours."""

from collections.abc import Callable
from typing import Any

Record = dict[str, Any]

HEAD = """# Results: tied parameters

Written by `python experiments/tying_page.py` from `experiments/parameter_tying/results`; nothing is typed in by
hand. The paper is *On Parameter Tying by Quantization* (Chou and others, 2016).

"""
PAPER = {
    "bn2o": ("20,510", "20,491", 500, 0.339, 0.339, 0.299),
    "students": ("1,308", 13, 20, 0.141, 0.141, 0.140),
    "grid": ("1,089", 596, 400, 0.0186, 0.0186, 0.0181),
    "friends": ("3,899", 6, 10, 0.008, 0.008, 0.007),
}
TABLE1 = """## Table 1: levels and errors

From each network 20 sets of 6,000 training, 2,000 validation and 2,000 test rows are drawn (the paper: 100 sets).
The tables are learned from the training rows with one count added to each entry, tied to k levels, and relearned
with the ties. Errors are the mean absolute difference between true and learned conditional probabilities, the
largest of the sets. k is what the validation rows choose, the median of the sets; it counts levels of all entries,
where the paper counts rows, whose two entries are p and 1 - p.

*Zeros* says how probabilities of zero are dealt with. *Smoothed*: like all others, as in the paper. *Known*: what
the true network forbids is part of the structure. The circuits are then small, and relearning exact in seconds;
smoothed, students and grid have circuits of 13 million edges, so that exact relearning was tried on fewer sets and
levels (4, 8, 20 and 64). bn2o has width 26 and no circuit. *By rows* is the variant that stays a Bayesian network
and needs no circuit: the entries of a row are divided by their sum, after quantising, and all along in relearning.

| network | zeros | rows | true k | MLE | k | quantised | k | by rows | k | relearned | k | by rows |
|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
"""
FIGURE1 = """
bn2o and students are the paper's networks; its grid and friends are larger than ours.

## Figure 1: test log-likelihood over the number of levels

![Mean log-likelihood of test rows over the number of levels, for four networks](figures/tying_figure1.svg)

Mean log-likelihood of a test row in nats, mean of the sets. Points that lie far below are cut off.
"""
ZEROS = """
Test log-likelihood with the levels that the validation rows choose. *Tuned* has no ties: the count added to each
entry is not one but what the validation rows choose (1, 0.3, 0.1, 0.03, 0.01 or 0.003). Where it does as well as
relearning, the gain over maximum likelihood was not one of ties but of less smoothing: relearning adds no counts.
Of students and grid with smoothed zeros, *relearned* is what it gains on three sets, added to the mean of all.

| network | true | MLE | tuned | relearned | by rows | MLE, zeros known | relearned | by rows |
|---|---:|---:|---:|---:|---:|---:|---:|---:|
"""
CLASSIFIERS = """
## Codebooks against fixed point

No paper has this: a codebook of 2^b levels against fixed point of b bits, both b bits an entry (the levels of a
codebook cost 32 bits each once more). Networks are trained in floats for {epochs} epochs, then stored; *trained*
are another {again} epochs through the format. Formats and weights of the levels are chosen on training rows. *Fixed
point, Figure 6* are the errors of the [sweeps](results.md) that train through fixed point, the best of many
settings **chosen on test rows**.

![Test error over the bits of an entry, fixed point and codebooks](figures/tying_classifiers.svg)

Test error in percent; satimage: the first fold.

| data | structure | stored as | 1 bit | 2 | 3 | 4 | 5 | 6 | 7 | 8 |
|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|
"""
CIRCUITS = """
### Circuits

Test log-likelihood of learned circuits whose parameters are stored in b bits, divided by the sum over all
assignments. The fixed-point format is chosen on validation rows.

| data | parameters | stored as | 1 bit | 2 | 3 | 4 | 5 | 6 | 7 | 8 | floats |
|---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|
"""

Answer = tuple[bool, str] | None


def _relearned(r: Record) -> Record | None:
    """Return the exactly relearned models, or those with normalised rows where there are none."""
    found: Record | None = r["methods"].get("relearned") or r["methods"].get("relearned rows")
    return found


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


VERDICTS: tuple[tuple[str, Callable[[Record], Answer]], ...] = (
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
