"""What *Resource-efficient classifiers* claims about networks under budgets, as questions to our results."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from experiments.records import DATA
from experiments.resource_efficient.nets import CLASSES, FEATURES, Chosen, Model, Nets, Table, front
from experiments.verdicts import Answer, Claim

IMAGES = ("usps", "mnist")
OTHERS = ("dense relu", "dense sign", "one-hot", "conv sign")
NAMES = {"naive": "naive Bayes", "chow-liu": "Chow-Liu", "subset": "TAN Subset"}
TREES = ("chow-liu", "subset")
CONSIDERABLY = 1.2  # times as many errors


@dataclass(frozen=True)
class Results:
    """All that claims are made about: by bits, by operations, the Bayesian networks, every model."""

    bits: Table
    operations: Table
    bayes: Table
    models: Sequence[Model]
    nets: Nets

    def by_budget(self, data: str, row: str) -> Mapping[int, Chosen]:
        table = self.bayes if row in NAMES else self.bits
        return table.get((data, row), {})

    def largest(self, data: str, row: str) -> float | None:
        """Return the test error at the largest budget."""
        budgets = self.by_budget(data, row)
        return budgets[max(budgets)].test if budgets else None

    def least(self, data: str, row: str) -> float | None:
        return min((c.test for c in self.by_budget(data, row).values()), default=None)


def bits_needed(r: Results) -> Iterator[Answer]:
    usps, letter = r.by_budget("usps", "naive"), r.by_budget("letter", "naive")
    if 1 in usps:
        least = min(c.test for c in usps.values())
        yield usps[1].test < 1.5 * least, f"usps {usps[1].test:.2f} with 1 bit, {least:.2f} at best"
    if letter:
        best = min(letter, key=lambda width: letter[width].test)
        series = ", ".join(f"{letter[w].test:.2f}" for w in sorted(letter))
        yield best >= 6, f"letter is best with {best} bits ({series} with {min(letter)} to {max(letter)})"


def small_cnns(r: Results) -> Iterator[Answer]:
    for data in IMAGES:
        cnn = r.by_budget(data, "conv relu")
        others = {row: r.largest(data, row) for row in (*OTHERS, *NAMES)}
        known = {row: error for row, error in others.items() if error is not None}
        if cnn and known:
            error, row = cnn[min(cnn)].test, min(known, key=lambda row: known[row])
            text = f"{data} {error:.2f}, the best other model {known[row]:.2f} ({NAMES.get(row, row)})"
            yield error < known[row], text


def signs(r: Results) -> Iterator[Answer]:
    for data in DATA:
        for kind in ("dense", "conv"):
            relu, sign = (r.by_budget(data, f"{kind} {name}") for name in ("relu", "sign"))
            ratios = [sign[b].test / relu[b].test for b in sorted({*relu} & {*sign})]
            if ratios:
                span = f"{min(ratios):.2f} to {max(ratios):.2f} times the errors of ReLU"
                yield min(ratios) > CONSIDERABLY, f"{data} {kind} {span}"


def dense_beats_naive(r: Results) -> Iterator[Answer]:
    for data in DATA:
        dense, naive = r.by_budget(data, "dense relu"), r.by_budget(data, "naive")
        both = sorted({*dense} & {*naive})
        if both:
            wins = [b for b in both if dense[b].test < naive[b].test]
            yield len(wins) == len(both), f"{data} at {len(wins)} of {len(both)} budgets"


def logistic(r: Results) -> Iterator[Answer]:
    for data in DATA:
        line, naive, dense = (r.least(data, row) for row in ("logistic regression", "naive", "dense relu"))
        if line is not None and naive is not None and dense is not None:
            poor = line > 1.5 * dense and line > naive
            yield poor, f"{data} {line:.2f} against {naive:.2f} of naive Bayes and {dense:.2f} of dense networks"


def one_hot(r: Results) -> Iterator[Answer]:
    dense, naive = r.by_budget("usps", "one-hot"), r.by_budget("usps", "naive")
    for width in sorted({*dense} & {*naive} - {1, 2}):
        own, net = naive[width].test, dense[width]
        bits, layers = net.setting["bits"], net.setting["layers"]
        text = f"{width} bits: {own:.2f}, network of {bits} bit{'s' * (bits > 1)} and {layers} layers {net.test:.2f}"
        yield net.test <= own and bits < width, text


def _first_better(r: Results, data: str, row: str) -> tuple[int | None, float, Mapping[int, Chosen]]:
    """Return the least multiple from which on a network is better than naive Bayes at any width."""
    budgets, naive = r.operations.get((data, row), {}), r.least(data, "naive")
    if not budgets or naive is None:
        return None, float("nan"), {}
    return next((m for m in sorted(budgets) if budgets[m].test < naive), None), naive, budgets


def break_even(r: Results) -> Iterator[Answer]:
    for data, (low, high) in {"usps": (2, 4), "mnist": (4, 8)}.items():
        first, naive, budgets = _first_better(r, data, "conv relu")
        if budgets:
            few = ", ".join(f"{budgets[m].test:.2f} at {m}x" for m in sorted(budgets)[:3])
            holds = first is not None and low <= first <= high
            yield holds, f"{data}: naive Bayes {naive:.2f}, CNN {few}: better from {first or 'no'}x on"


def break_even_sign(r: Results) -> Iterator[Answer]:
    for data in IMAGES:
        relu, _, _ = _first_better(r, data, "conv relu")
        sign, _, budgets = _first_better(r, data, "conv sign")
        if budgets and relu is not None:
            yield sign is None or sign > relu, f"{data}: {sign or 'none'}x with the sign, {relu}x with ReLU"


def best_multiple(r: Results) -> Iterator[Answer]:
    for data, wanted in (("usps", 64), ("mnist", 256)):
        budgets = r.operations.get((data, "conv relu"), {})
        if budgets:
            best = min(budgets, key=lambda m: budgets[m].test)
            series = ", ".join(f"{budgets[m].test:.2f}" for m in sorted(budgets))
            yield best >= wanted, f"{data}: best at {best}x ({series} at {min(budgets)}x to {max(budgets)}x)"


def trees(r: Results) -> Iterator[Answer]:
    for data in DATA:
        naive = r.least(data, "naive")
        tree = min((f for f in TREES if r.by_budget(data, f)), key=lambda f: r.least(data, f) or 0.0, default=None)
        if naive is not None and tree is not None:
            error = r.least(data, tree)
            # With as many bits an entry.
            least = [min(m.bits for m in r.models if (m.data, m.family) == (data, f)) for f in (tree, "naive")]
            ratio = least[0] / least[1]
            text = f"{data} {naive:.2f} to {error:.2f} ({NAMES[tree]}) for {ratio:.1f} times the bits"
            yield error is not None and error < naive and ratio > 2, text


def networks_win(r: Results) -> Iterator[Answer]:
    for data in DATA:
        nets, bayes = ([m for m in r.models if m.data == data and (m.family in NAMES) == own] for own in (False, True))
        if nets and bayes:
            net, own = min(nets, key=lambda m: m.error), min(bayes, key=lambda m: m.error)
            ratio = net.operations / own.operations
            holds = net.error < own.error and ratio > 2
            yield holds, f"{data} {net.error:.2f} against {own.error:.2f}, {ratio:.0f} times the operations"


def bottleneck(r: Results) -> Iterator[Answer]:
    for data in DATA:
        limit, naive = FEATURES[data] * CLASSES[data], r.least(data, "naive")
        final = [m for m in r.models if (m.data, m.family) == (data, "dense relu") and m.operations < limit]
        short = [m for m in r.nets.short(data, "dense relu") if m.operations < limit]
        best = min(final or short, key=lambda m: m.error, default=None)
        if best is not None and naive is not None:
            when = "" if final else " after the short runs"
            share = f"{best.operations:,.0f} of {limit:,} operations"
            yield best.error > naive, f"{data} {best.error:.2f}{when} with {share}; naive Bayes {naive:.2f}"


def thousands(r: Results) -> Iterator[Answer]:
    for data, many in (("usps", 100), ("mnist", 300)):  # the nearest power of ten to 300 times is a thousand
        cnns = [m for m in r.models if (m.data, m.family) == (data, "conv relu")]
        naive = min((m.bits for m in r.models if (m.data, m.family) == (data, "naive")), default=None)
        if cnns and naive is not None:
            best = min(cnns, key=lambda m: m.error)
            ratio = best.operations / (FEATURES[data] * CLASSES[data])
            text = f"{data}: its best, {best.error:.2f}, takes {ratio:.0f} times the operations"
            yield ratio >= many, f"{text} and {best.bits / naive:.0f} times the bits of 1-bit naive Bayes"


def families(r: Results) -> Iterator[Answer]:
    for data in DATA:
        own = [m for m in r.models if m.data == data]
        if own:
            on_front = [_kind(m) for m in front(own)]
            counts = {kind: on_front.count(kind) for kind in dict.fromkeys(map(_kind, own))}
            text = ", ".join(f"{kind} {count}" for kind, count in counts.items())
            yield all(counts.values()), f"{data}: {text}"


def _kind(model: Model) -> str:
    """Return the family of a model, whatever its activation."""
    return NAMES.get(model.family) or ("CNNs" if model.family.startswith("conv") else "dense networks")


_NETS = "resource-efficient-classifiers-figures-3-4-and-7-networks-under-budgets"
_FIGURE3, _FIGURE4, _FIGURE7 = (("Figure 3", _NETS), ("Figure 4", _NETS), ("Figure 7", _NETS))
CLAIMS: tuple[Claim[Results], ...] = tuple(
    Claim(section, text, ask, figure)
    for section, figure, text, ask in (
        (
            "V-C",
            _FIGURE3,
            "1-bit naive Bayes does reasonably well on usps; letter gains up to 6 or 7 bits.",
            bits_needed,
        ),
        ("V-C", _FIGURE3, "CNNs with ReLU at the smallest budget beat all other models at the largest.", small_cnns),
        ("V-C", _FIGURE3, "The sign degrades accuracy considerably.", signs),
        ("V-C", _FIGURE3, "Dense networks beat naive Bayes consistently.", dense_beats_naive),
        ("V-C", _FIGURE3, "Logistic regression in float32 does poorly on real-valued inputs.", logistic),
        (
            "V-C",
            _FIGURE3,
            "On usps, dense networks of fewer bits with one-hot inputs reach naive Bayes with 3 or more bits.",
            one_hot,
        ),
        (
            "V-D",
            _FIGURE4,
            "To beat naive Bayes, CNNs with ReLU need 2 to 4 times its operations on usps, 4 to 8 on mnist.",
            break_even,
        ),
        ("V-D", _FIGURE4, "With the sign even more operations are needed.", break_even_sign),
        (
            "V-D",
            _FIGURE4,
            "CNNs need 64 times the operations on usps and 256 times on mnist for their best.",
            best_multiple,
        ),
        ("V-G", _FIGURE7, "A tree improves on naive Bayes, for a considerable price in memory.", trees),
        (
            "V-G",
            _FIGURE7,
            "Networks beat Bayesian networks on every data set, with substantially more operations.",
            networks_win,
        ),
        (
            "V-G",
            _FIGURE7,
            "With a bottleneck, dense networks may take fewer operations than naive Bayes, at a loss.",
            bottleneck,
        ),
        ("V-G", _FIGURE7, "CNNs take many operations: on mnist up to three orders of magnitude more.", thousands),
        ("V-G", _FIGURE7, "No family can be excluded: each has models on the front.", families),
    )
)
