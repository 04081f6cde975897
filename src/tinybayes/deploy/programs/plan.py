"""The plan of a model: the one form from which the programs of every target are made.

A classifier of tables is a sum of table rows. A *term* is a table that depends on the class. Its rows hold one entry
for each class, and the row is found by adding multiples of the features' codes to the term's first row. Tables without
the class add the same to all classes.

A neural network is made of layers without negative numbers, which fit in narrow lanes, and whose zeros can be skipped.
Values enter a layer as ``z``, weights as their codes ``k``, and with ``top = 2**bits - 1`` a sum is

    factor * (2 * sum(k * z) - top * sum(z)) + bias

where factor and bias contain the signs, centers and offsets that were removed from the values.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np

from tinybayes.cost import model_cost
from tinybayes.deploy.files.network_text import tell_of_size, tree_rows
from tinybayes.deploy.programs.classifier_plan import ClassifierPlan, check_states
from tinybayes.deploy.programs.encoding import make_features
from tinybayes.deploy.programs.names import plain, upwards
from tinybayes.deploy.programs.tree_plan import TreePlan, make_tree_plan
from tinybayes.errors import error
from tinybayes.infer.integers import GapArithmetic, gap_arithmetic, integer_levels
from tinybayes.infer.scorer import forest_parents
from tinybayes.model import CPD, BayesNet, Codebook, Fixed, Float, NeuralNet, NumberFormat, TreeEnsemble
from tinybayes.model.layout import strides
from tinybayes.model.neural_net import LARGEST, PEAK, Layer

_Table = tuple[np.ndarray, tuple[tuple[int, int], ...]]  # its rows, and the steps of its term
LOG_ADD_ERROR = 4e-7  # nats: of an addition of probabilities in 32-bit floats, besides the rounding of its result
NET_FORMS = ("compact", "lanes")
MAX_ENTRIES = 2**22  # of a decision tree written out as a table: more than any device holds


@dataclass(frozen=True)
class Term:
    """A table whose row is ``first`` plus, for each pair (feature, stride), the stride times the feature's code."""

    first: int
    steps: tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class Terms:
    """A classifier laid out as rows of codes."""

    states: tuple[int, ...]  # cardinality of each feature
    classes: int  # number of classes
    terms: tuple[Term, ...]  # the tables that depend on the class
    rows: np.ndarray  # all rows of their codes, shape (rows, classes)
    constant: np.ndarray  # rows that are always added, such as the class prior, shape (any, classes)
    common: tuple[Term, ...]  # the tables that do not depend on the class
    entries: np.ndarray  # all their entries
    common_constant: np.ndarray  # entries of such tables that are always added

    @property
    def has_common(self) -> bool:
        """Whether there are tables that do not depend on the class."""
        return bool(self.common) or len(self.common_constant) > 0

    def tables(self) -> Iterator[tuple[Term, np.ndarray]]:
        """Yield each table that depends on the class with its rows, then those that do not with their entries."""
        for terms, rows in ((self.terms, self.rows), (self.common, self.entries)):
            ends = [*(t.first for t in terms), len(rows)]
            yield from ((term, rows[a:b]) for term, (a, b) in zip(terms, pairwise(ends), strict=True))


@dataclass(frozen=True, eq=False)
class TablePlan(ClassifierPlan):
    """A classifier made of tables on its way to a device."""

    net: BayesNet  # the classifier; tables of several formats, or of 64-bit floats, were converted to 32-bit floats
    terms: Terms  # its tables as rows of codes (float32 values for floats)
    form: NumberFormat  # the one number format
    # For each code the integer that it adds to a score; None for floats, which are added as they are.
    values: np.ndarray | None
    fraction: int  # an integer score is in units of ``2**-fraction`` nats
    # How integers sum out missing values; None for floats, and where rows must be complete.
    arithmetic: GapArithmetic | None = None

    @property
    def shift(self) -> int:
        """The bits by which sums of values are shifted up to the unit of scores."""
        return 0 if self.arithmetic is None else self.arithmetic.shift

    @property
    def score(self) -> str:
        """The C type of a score."""
        return "float" if self.values is None else "int32_t"

    @property
    def nats(self) -> float | None:
        """The unit of integer scores in nats; None for floats, which are in nats."""
        return None if self.values is None else math.ldexp(1.0, -self.fraction)

    @property
    def bits(self) -> int:
        """The bits of a stored code; a codebook with a single level needs none, but no array is empty."""
        return max(self.form.bits, 1)

    @property
    def entries(self) -> int:
        """The number of table entries that depend on the class."""
        return self.terms.rows.size

    @property
    def unit_property(self) -> dict[str, str]:
        """The unit of integer scores, by its name."""
        return {} if self.values is None else {"fraction": str(self.fraction)}

    @cached_property
    def reach(self) -> int:
        """The largest magnitude that a sum of integers, or a part of it, can have."""
        parts = [rows for _, rows in self.terms.tables()]
        parts += [*self.terms.constant, *self.terms.common_constant]
        return sum(int(np.abs(self.worth(part)).max()) for part in parts)

    def worth(self, codes: np.ndarray) -> np.ndarray:
        """Return what codes add to a score."""
        if self.values is None:
            return np.asarray(codes, dtype=np.float32)
        if isinstance(self.form, Fixed):  # no table of all codes: there may be 2**32
            return -np.asarray(codes, dtype=np.int64)
        return self.values[codes]

    def facts(self, note: str = "") -> list[str]:
        """Return lines for the comment at the top of generated files."""
        return [
            f"A classifier of {len(self.variables)} features into {self.classes} classes, by tinybayes.",
            f"Price: {model_cost(self.net)}; entries are {self.form}.",
            f"Scores are {self.unit}.",
            "Missing values are summed out." if self.features.gaps else "Rows must be complete.",
            *([plain(note)] if note else []),
            f"Model {self.id}.",
        ]

    @property
    def unit(self) -> str:
        """What a score means."""
        if self.values is None:
            gaps = f", {upwards(self.gap_error)} where values are missing" if self.features.gaps else ""
            return f"sums of 32-bit floats, within {upwards(self.float_error)} nats of the exact ones{gaps}"
        exact = "as stored" if isinstance(self.form, Fixed) else "to which the levels of the codebook were rounded"
        return f"log p(x, class) in units of 2**{-self.fraction} nats, {exact}"

    @property
    def float_error(self) -> float:
        """A bound of the rounding error of a finite score that is added up in 32-bit floats, one term after another.

        Every partial sum is at most the sum of the magnitudes, and each addition and each entry rounds once.
        """
        return self._additions * self._magnitude * 2.0**-23

    @property
    def gap_error(self) -> float:
        """A bound like `float_error` for rows with missing values: k - 1 additions of probabilities for k states.

        A sum of probabilities passes on an error of its terms undiminished at worst, and lifts a score by the logarithm
        of the number of states.
        """
        states = np.array(self.terms.states)
        largest = self._magnitude + float(np.log(states).sum())
        additions = int((states - 1).sum())
        return self._additions * largest * 2.0**-23 + additions * (LOG_ADD_ERROR + largest * 2.0**-24)

    @property
    def _additions(self) -> int:
        return len(self.terms.terms) + len(self.terms.common) + 2

    @property
    def _magnitude(self) -> float:
        """The largest sum of the magnitudes of finite entries."""
        finite = 0.0
        for _, rows in self.terms.tables():
            finite += float(np.abs(rows[np.isfinite(rows)]).max(initial=0.0))
        for constant in (self.terms.constant, self.terms.common_constant):
            finite += float(np.abs(constant[np.isfinite(constant)]).sum())
        return finite


def make_table_plan(net: object, raw: str | None = "none", *, gaps: bool = False) -> TablePlan:
    """Lay out a classifier, which must be one of tables; raise when a device could not hold its codes or sums.

    With `gaps` missing values are summed out, if the features are a forest; other plans take complete rows only.
    """
    if not isinstance(net, BayesNet):
        remedy = "circuits are written in C, C++ and Arduino"
        raise error("a Bayesian network with a class", type(net).__name__, where="export", remedy=remedy)
    model = net
    check_states(net.nodes)
    formats = {cpd.format for cpd in net.cpds}
    form = next(iter(formats))
    if len(formats) > 1 or isinstance(form, Float):
        form = Float(32)
        net = replace(net, cpds=tuple(replace(c, table=form.encode(c.log_parameters), format=form) for c in net.cpds))
    terms = lay_out(net)
    values, fraction = None, 0
    if isinstance(form, Fixed):
        values, fraction = np.empty(0, np.int64), form.fraction
    elif isinstance(form, Codebook):
        values, fraction = integer_levels(net)
    assert net.target is not None
    arithmetic = gap_arithmetic(net) if gaps else None
    forest = gaps and forest_parents(net) is not None and (values is None or arithmetic is not None)
    features = make_features(net.variables, raw, gaps=forest)
    fraction = fraction if arithmetic is None else arithmetic.fraction
    plan = TablePlan(model, net.target, features, net, terms, form, values, fraction, arithmetic)
    if values is not None and plan.reach > LARGEST:
        remedy = "quantise to fewer bits"
        raise error("sums of all tables below 2**31", f"{plan.reach:,}", where="integer sums", remedy=remedy)
    return plan


def lay_out(net: BayesNet) -> Terms:
    """Lay out a classifier; tables that depend on features with one state only are constant."""
    if net.target is None:
        raise error("a model with a class", "none", where="export", remedy="learn it with a target")
    target, classes = len(net.variables), net.target.cardinality
    states = [node.cardinality for node in net.nodes]
    with_class: list[_Table] = []
    without: list[_Table] = []
    for node, cpd in enumerate(net.cpds):
        axes = [*cpd.parents, node]
        table = full_table(net, node, cpd).reshape([states[v] for v in axes])
        if target in axes:
            table = np.moveaxis(table, axes.index(target), -1).reshape(-1, classes)
            axes.remove(target)
            with_class.append((table, _steps(axes, states)))
        elif np.isneginf(table).any():  # predictions must see an entry that is impossible in every class
            with_class.append((np.repeat(table.reshape(-1, 1), classes, axis=1), _steps(axes, states)))
        else:
            without.append((table.reshape(-1), _steps(axes, states)))
    empty = np.empty((0, classes), net.cpds[0].table.dtype)
    return Terms(tuple(states[:target]), classes, *_joined(with_class, empty), *_joined(without, empty[:, 0]))


def _joined(tables: list[_Table], empty: np.ndarray) -> tuple[tuple[Term, ...], np.ndarray, np.ndarray]:
    """Return terms and their rows, one table after another; one without steps has a single row, always added."""
    parts = [(rows, steps) for rows, steps in tables if steps]
    first = accumulate((len(rows) for rows, _ in parts), initial=0)
    terms = tuple(Term(start, steps) for start, (_, steps) in zip(first, parts, strict=False))
    rows = np.concatenate([empty, *(rows for rows, _ in parts)])
    return terms, rows, np.concatenate([empty, *(rows for rows, steps in tables if not steps)])


def full_table(net: BayesNet, node: int, cpd: CPD) -> np.ndarray:
    """Return the codes of a distribution as a full table; a decision tree is written out."""
    if cpd.tree is None:
        return cpd.table
    shape = [net.nodes[p].cardinality for p in cpd.parents]
    if math.prod(shape) * cpd.table.shape[1] > MAX_ENTRIES:
        where, remedy = f"distribution of {net.nodes[node].name!r}", "compile the network to a circuit and export that"
        raise error(f"at most {MAX_ENTRIES:,} entries", "a larger decision tree", where=where, remedy=remedy)
    tell_of_size(math.prod(shape) * cpd.table.shape[1], f"distribution of {net.nodes[node].name!r}")
    return cpd.table[tree_rows(cpd.tree, cpd.parents, shape)]


def _steps(axes: list[int], states: list[int]) -> tuple[tuple[int, int], ...]:
    """Return the stride of each feature, leaving out those whose code is always zero."""
    steps = zip(axes, strides([states[v] for v in axes]), strict=True)
    return tuple((v, stride) for v, stride in steps if states[v] > 1)


@dataclass(frozen=True, eq=False)
class Stage:
    """A layer on its way to a device."""

    layer: Layer
    shape: tuple[int, ...]  # of the layer's input
    codes: np.ndarray  # of the weights, shape (terms, units); those of negated inputs are negated
    factor: int  # see the module
    bias: np.ndarray  # see the module
    peaks: np.ndarray  # the largest ``z`` of each term
    pad: int = 0  # the ``z`` of a value of zero, which surrounds an image
    scale: np.ndarray | None = None  # of the first layer: how a column becomes ``z = scale * value + shift``
    shift: np.ndarray | None = None
    gap: np.ndarray | None = None  # of the first layer: the ``z`` of a missing value, where values may be missing

    @property
    def top(self) -> int:
        """The largest code."""
        return int(2**self.layer.bits - 1)

    @property
    def flags(self) -> bool:
        """Whether all values are zero or one."""
        return bool(self.peaks.max(initial=0) <= 1)


@dataclass(frozen=True, eq=False)
class NetPlan(ClassifierPlan):
    """A neural network on its way to a device."""

    net: NeuralNet
    form: str | None = None  # of the program: "compact", "lanes"; None for the one that suits its size
    score = "int32_t"

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """The layers without negative numbers."""
        net = self.net
        first = (_first_image if net.layers[0].convolution else _first)(net, gaps=self.features.gaps)
        before = [layer.activation for layer in net.layers]
        return (first, *map(_hidden, net.layers[1:], net.shapes[1:], before))

    @property
    def nats(self) -> float:
        """The unit of scores in nats."""
        return float(self.net.scale)

    @property
    def entries(self) -> int:
        """The number of weights."""
        return sum(layer.codes.size for layer in self.net.layers)

    @property
    def unit_property(self) -> dict[str, str]:
        """The unit of scores, by its name."""
        return {"scale": repr(float(self.net.scale))}

    def facts(self, note: str = "") -> list[str]:
        """Return lines for the comment at the top of generated files."""
        net = self.net
        layers = [
            f"{'convolution to ' if layer.convolution else ''}{layer.units} units of {layer.bits} bits"
            for layer in net.layers
        ]
        return [
            f"A neural net of {len(self.variables)} features into {self.classes} classes, by tinybayes.",
            f"Layers: {', '.join(layers)}.",
            f"Price: {model_cost(net)}.",
            f"Scores times {net.scale:.6g} are log p(class | x), up to a constant of the row; they are exact.",
            "A missing value adds nothing." if self.features.gaps else "Rows must be complete.",
            *([plain(note)] if note else []),
            f"Model {self.id}.",
        ]


def _column_peaks(net: NeuralNet) -> np.ndarray:
    """Return the largest number of each column before its multiplier."""
    top = np.array([v.cardinality - 1 for v in net.variables], dtype=np.int64)[net.inputs.feature]
    return np.where(net.inputs.state >= 0, 1, top)


def _first(net: NeuralNet, *, gaps: bool) -> Stage:
    """Fold centres into the bias, and signs of multipliers into the weights.

    A missing value adds nothing: it enters as its centre, which the bias takes away. Where that is negative, the whole
    column is lifted instead, so that a missing value is zero.
    """
    layer, multiplier = net.layers[0], net.inputs.multiplier.astype(np.int64)
    codes = np.where(multiplier[:, None] < 0, 2**layer.bits - 1 - layer.codes, layer.codes).astype(np.uint8)
    center = net.inputs.center.astype(np.int64)
    if not gaps:
        bias = layer.bias - center @ layer.weights
        factor = math.gcd(*multiplier.tolist()) or 1
        scale = np.abs(multiplier) // factor
        peaks = scale * _column_peaks(net)
        return Stage(layer, net.shapes[0], codes, factor, bias, peaks, scale=scale, shift=np.zeros_like(scale))
    factor = math.gcd(*multiplier.tolist(), *center.tolist()) or 1
    middle = np.where(multiplier < 0, -center, center)  # with the sign that the weights have now
    bias = layer.bias - np.where(middle > 0, center, 0) @ layer.weights
    scale, shift, gap = np.abs(multiplier) // factor, np.maximum(-middle, 0) // factor, np.maximum(middle, 0) // factor
    peaks = np.maximum(scale * _column_peaks(net) + shift, gap)
    return Stage(layer, net.shapes[0], codes, factor, bias, peaks, scale=scale, shift=shift, gap=gap)


def _first_image(net: NeuralNet, *, gaps: bool) -> Stage:
    """Lift all pixels, and the zeros around them and for missing ones, by as much as the darkest is below zero."""
    layer, multiplier = net.layers[0], net.inputs.multiplier.astype(np.int64)
    center, top = net.inputs.center.astype(np.int64), multiplier * _column_peaks(net)
    lift = max(0, int((center - np.minimum(top, 0)).max()))
    factor = math.gcd(lift, *multiplier.tolist(), *(lift - center).tolist()) or 1
    scale, shift, pad = multiplier // factor, (lift - center) // factor, lift // factor
    peak = max(pad, int((np.maximum(top, 0) // factor + shift).max()))
    first = {"scale": scale, "shift": shift} | ({"gap": np.full_like(scale, pad)} if gaps else {})
    return _image(layer, net.shapes[0], factor, lift, pad, peak, **first)


def _hidden(layer: Layer, shape: tuple[int, ...], before: str) -> Stage:
    """Take signs as 0 and 1 (in images, where there are zeros as well, as 0 and 2 around a 1)."""
    signs = before == "sign"
    if layer.convolution:
        return _image(layer, shape, 1, int(signs), int(signs), 2 if signs else PEAK)
    peaks = np.full(len(layer.codes), 1 if signs else PEAK)
    bias = layer.bias.astype(np.int64) - (layer.weights.sum(axis=0) if signs else 0)
    return Stage(layer, shape, layer.codes, 2 if signs else 1, bias, peaks)


def _image(
    layer: Layer, shape: tuple[int, ...], factor: int, lift: int, pad: int, peak: int, **first: np.ndarray
) -> Stage:
    codes = layer.codes.reshape(-1, layer.units)
    weights = layer.weights.reshape(-1, layer.units).astype(np.int64)
    bound = int(np.abs(weights).sum(axis=0).max()) * peak
    if bound > LARGEST:
        remedy = "use fewer bits, or smaller multipliers of the inputs"
        raise error("sums below 2**31", f"{bound:,}", where="convolution", remedy=remedy)
    bias = layer.bias - lift * weights.sum(axis=0)
    return Stage(layer, shape, codes, factor, bias, np.full(len(codes), peak), pad, **first)


Plan = TablePlan | NetPlan | TreePlan


def make_plan(model: object, raw: str | None = "none", *, gaps: bool = False, form: str | None = None) -> Plan:
    """Lay out a model for export; raise when a device could not hold its codes or sums.

    Programs of trees and of neural nets have one of several forms, see `tinybayes.deploy.programs.trees` and
    `tinybayes.deploy.programs.net`.
    """
    if form is not None and not isinstance(model, TreeEnsemble | NeuralNet):
        raise error("trees or a neural net with this option", type(model).__name__, where="form")
    if isinstance(model, NeuralNet):
        features = make_features(model.variables, raw, gaps=gaps)
        check_states((*model.variables, model.target))
        if form not in (None, *NET_FORMS):
            raise error(f"one of {', '.join(NET_FORMS)}", repr(form), where="form")
        return NetPlan(model, model.target, features, model, form)
    if isinstance(model, TreeEnsemble):
        return make_tree_plan(model, raw, gaps=gaps, form=form)
    return make_table_plan(model, raw, gaps=gaps)


def rows_with_every_state(states: tuple[int, ...], count: int) -> np.ndarray:
    """Draw rows of codes to try a program on, always the same ones; every state of every feature occurs."""
    rng = np.random.default_rng(0)
    count = max((count, *states))
    columns = [rng.permutation(np.arange(count) % k) for k in states]
    return np.array(columns, dtype=np.int32).T.reshape(count, len(states))
