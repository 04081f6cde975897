"""What *Resource-efficient classifiers* claims about Bayesian networks, as questions to our results."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from experiments.records import DATA, Point, label
from experiments.store import Record
from experiments.verdicts import Answer, Claim

LARGE = 0.95  # of the errors: a large margin
Errors = Mapping[tuple[str, str], Mapping[int, float]]  # by data and structure, then by bits


@dataclass(frozen=True)
class Results:
    """Models of Figure 5 with the sizes of naive Bayes, errors of Figure 6, and the integer networks."""

    sizes: Sequence[Point]
    naive: Mapping[str, float]
    trained: Errors
    first_fold: Mapping[str, Mapping[int, float]]  # naive Bayes so, on the rows of the integer networks
    rounded: Errors
    formats: Mapping[tuple[str, str, int], Record]  # the best setting for each number of bits
    integer: Sequence[Record]
    ours: Sequence[Record]  # several settings of the loss on the rows of the integer networks

    def same_rows(self) -> list[tuple[Record, Record]]:
        """Return for each data set, rows and bits the best integer network and the best of ours on the same rows.

        The seconds of ours are those of a single setting.
        """
        groups: dict[tuple[str, int, int], list[Record]] = {}
        for r in self.integer:
            if r["error"] is not None:
                groups.setdefault((r["data"], r["used"], r["bits"]), []).append(r)
        several = {(r["data"], r["used"], r["bits"]): r["error"] for r in self.ours}
        pairs = []
        for key, tried in sorted(groups.items(), key=lambda item: (DATA.index(item[0][0]), item[0][1:])):
            one = min((r["ours, same rows"] for r in tried), key=lambda ours: ours["error"])
            least = min(one["error"], several.get(key, 1.0))
            pairs.append((min(tried, key=lambda r: r["error"]), {**one, "error": least}))
        return pairs


def beats_integer(r: Results) -> Iterator[Answer]:
    for best, ours in r.same_rows():
        own, other = 100 * ours["error"], 100 * best["error"]
        text = f"{best['data']}, {best['used']:,} rows, {_bits(best['bits'])}: {own:.2f} against {other:.2f}"
        yield own < LARGE * other, text


def beats_integer_all(r: Results) -> Iterator[Answer]:
    for best, _ in r.same_rows():
        own = r.first_fold.get(best["data"], {}).get(best["bits"])
        if own is not None:
            other = 100 * best["error"]
            text = f"{best['data']}, {_bits(best['bits'])}: {own:.2f} against {other:.2f} from {best['used']:,} rows"
            yield own < LARGE * other, text


def sooner(r: Results) -> Iterator[Answer]:
    for data in DATA:
        ratios = sorted(
            best["seconds"] / max(ours["seconds"], 0.1) for best, ours in r.same_rows() if best["data"] == data
        )
        if ratios:
            yield ratios[len(ratios) // 2] >= 2, f"{data}: {ratios[0]:.1f} to {ratios[-1]:.0f} times as fast"


def other_settings(r: Results) -> Iterator[Answer]:
    for data in DATA:
        best = {width: r.formats[data, "naive", width] for width in range(1, 9) if (data, "naive", width) in r.formats}
        if len(best) > 1:
            different = {(s["lam"], s["gamma"], s["learning_rate"]) for s in best.values()}
            yield len(different) > 1, f"{data} {len(different)} settings for {len(best)} widths"


def ends_of_lambda(r: Results) -> Iterator[Answer]:
    """Compare the models of the smallest and of the largest price with naive Bayes and with each other."""
    for data in DATA:
        own = [p for p in r.sizes if p.sweep.data == data]
        if not own or data not in r.naive:
            continue
        prices = sorted({p.setting["size_penalty"] for p in own})
        low, high = (
            min(p.parameters for p in own if p.setting["size_penalty"] == price) / r.naive[data]
            for price in (prices[0], prices[-1])
        )
        yield (
            high < 1.005 and low > 1.5,
            f"{data} {low:.1f} times naive Bayes at {prices[0]:.0e}, {high:.3f} at {prices[-1]:.0e}",
        )


def trade(r: Results) -> Iterator[Answer]:
    """Ask whether sizes fall and errors rise with the prices that leave sizes between the ends of the range."""
    for data in DATA:
        by_price: dict[float, list[Point]] = {}
        for p in r.sizes:
            if p.sweep.data == data:
                by_price.setdefault(p.setting["size_penalty"], []).append(p)
        mean = {price: sum(p.parameters for p in own) / len(own) for price, own in sorted(by_price.items())}
        if not mean:
            continue
        low, high = min(mean.values()), max(mean.values())
        middle = [
            price for price, size in mean.items() if low + 0.05 * (high - low) < size < high - 0.05 * (high - low)
        ]
        if len(middle) > 2:
            errors = [sum(p.error for p in by_price[price]) / len(by_price[price]) for price in middle]
            falls, rises = _order(middle, [mean[price] for price in middle]), _order(middle, errors)
            yield (
                falls < -0.8 and rises > 0.8,
                f"{data}: {falls:+.2f} (size), {rises:+.2f} (error), {len(middle)} prices",
            )


def _order(x: Sequence[float], y: Sequence[float]) -> float:
    """Return Spearman's rank correlation."""
    import numpy as np

    ranks = [np.argsort(np.argsort(np.asarray(values), kind="stable"), kind="stable") for values in (x, y)]
    return float(np.corrcoef(*ranks)[0, 1])


def cheap_on_usps(r: Results) -> Iterator[Answer]:
    own = [(p.parameters / r.naive["usps"], p.error) for p in r.sizes if p.sweep.data == "usps" and "usps" in r.naive]
    naive = min((e for size, e in own if size <= 1.005), default=None)
    little = min((e for size, e in own if size <= 1.1), default=None)
    if naive is not None and little is not None:
        yield little < LARGE * naive, f"{naive:.2f} at the size of naive Bayes, {little:.2f} at 1.1 times"


def bits_for_errors(r: Results) -> Iterator[Answer]:
    for (data, structure), errors in r.trained.items():
        widths = sorted(errors)
        if len(widths) > 3:
            text = (
                f"{data} {label(structure)} {errors[widths[0]]:.2f} with {widths[0]} bit to {min(errors.values()):.2f}"
            )
            yield min(errors.values()) < LARGE * errors[widths[0]], text


def saturation(r: Results) -> Iterator[Answer]:
    """Ask whether the number of bits from which on errors are within 5 % of the least differs."""
    found = {
        key: min(w for w in errors if errors[w] * LARGE <= min(errors.values()))
        for key, errors in r.trained.items()
        if len(errors) > 3
    }
    if len(found) > 1:
        text = ", ".join(f"{data} {label(structure)} {width}" for (data, structure), width in found.items())
        yield len(set(found.values())) > 1, f"within 5 % of the least error from bits on: {text}"


def naive_suffers(r: Results) -> Iterator[Answer]:
    for (data, structure), tree in r.trained.items():
        naive = r.trained.get((data, "naive"), {})
        for width in (1, 2):
            if structure != "naive" and width in naive and width in tree:
                lost, kept = naive[width] / min(naive.values()), tree[width] / min(tree.values())
                text = f"{data} {_bits(width)}: {lost:.2f} times the least error, {label(structure)} {kept:.2f}"
                yield lost > kept, text


def _bits(width: int) -> str:
    return f"{width} bit{'s' * (width > 1)}"


def aware(r: Results) -> Iterator[Answer]:
    for (data, structure), rounded in r.rounded.items():
        trained = r.trained.get((data, structure), {})
        both = sorted(set(trained) & set(rounded))
        if both:
            wins = sum(trained[w] < rounded[w] for w in both)
            yield wins == len(both), f"{data} {label(structure)} at {wins} of {len(both)} numbers of bits"


_INTEGER = ("integer networks", "resource-efficient-classifiers-integer-networks-by-branch-and-bound")
_FIGURE5 = ("Figure 5", "resource-efficient-classifiers-figure-5-the-price-of-size")
_FIGURE6 = ("Figure 6", "resource-efficient-classifiers-figure-6-bits")
CLAIMS: tuple[Claim[Results], ...] = tuple(
    Claim(section, text, ask, figure)
    for section, figure, text, ask in (
        ("I, III", _FIGURE6, "Quantisation-aware training beats rounding after training.", aware),
        (
            "I, V-C, VI",
            _INTEGER,
            "It beats branch and bound by a large margin (5 %); here on equal rows.",
            beats_integer,
        ),
        ("I, V-C, VI", _INTEGER, "The same, with all training rows and the settings of Figure 6.", beats_integer_all),
        ("I", _INTEGER, "It takes much less time than branch and bound (half, in the median of a data set).", sooner),
        ("V-C", _FIGURE6, "Different settings are best for different numbers of bits.", other_settings),
        ("V-E", _FIGURE5, "A small lambda_MS leaves the trees free, a large one gives naive Bayes.", ends_of_lambda),
        ("V-E", _FIGURE5, "Between them sizes fall and errors rise (rank correlations of 0.8).", trade),
        (
            "V-E",
            _FIGURE5,
            "On usps a tenth more entries brings substantial gains (5 %).",
            cheap_on_usps,
        ),
        ("V-F", _FIGURE6, "Bits trade size for errors, with both structures.", bits_for_errors),
        ("V-F", _FIGURE6, "The bits at which errors saturate depend on data and structure.", saturation),
        ("V-F", _FIGURE6, "With one or two bits naive Bayes suffers more than the tree.", naive_suffers),
    )
)
