"""What every exporter of classifiers starts from: rows of codes, what a code is worth, and the widths of sums."""

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from tinybayes.cost import model_cost
from tinybayes.deploy.programs._terms import Terms, lay_out
from tinybayes.errors import error
from tinybayes.infer.integers import integer_levels
from tinybayes.model import BayesNet, Codebook, Fixed, Float, NumberFormat, Variable

LARGEST = 2**31 - 1
MAX_STATES = 2**16


@dataclass(frozen=True, eq=False)
class Plan:
    """A classifier on its way to a device.

    Parameters
    ----------
    net
        The classifier; tables of several formats, or of 64-bit floats, were made 32-bit floats.
    terms
        Its tables as rows of codes (float32 values for floats).
    form
        The one number format.
    values
        For each code what it adds to a score, as whole numbers; None for floats, which are added as they are.
    fraction
        A score in whole numbers is in units of ``2**-fraction`` nats.
    """

    net: BayesNet
    terms: Terms
    form: NumberFormat
    values: np.ndarray | None
    fraction: int

    @property
    def target(self) -> Variable:
        """The class variable."""
        assert self.net.target is not None
        return self.net.target

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The features."""
        return self.net.variables

    @property
    def features(self) -> int:
        """The number of features."""
        return len(self.net.variables)

    @property
    def classes(self) -> int:
        """The number of classes."""
        return self.terms.classes

    @property
    def score(self) -> str:
        """The C type of a score."""
        return "float" if self.values is None else "int32_t"

    @cached_property
    def reach(self) -> int:
        """The largest magnitude that a sum of whole numbers, or a part of it, can have."""
        total = 0
        for terms, rows, constant in (
            (self.terms.terms, self.terms.rows, self.terms.constant),
            (self.terms.common, self.terms.entries, self.terms.common_constant),
        ):
            ends = [*(t.first for t in terms), len(rows)]
            parts = [rows[a:b] for a, b in pairwise(ends)] + list(constant)
            total += sum(int(np.abs(self.worth(part)).max()) for part in parts)
        return total

    def worth(self, codes: np.ndarray) -> np.ndarray:
        """Return what codes add to a score."""
        if self.values is None:
            return np.asarray(codes, dtype=np.float32)
        if isinstance(self.form, Fixed):  # no table of all codes: there may be 2**32
            return -np.asarray(codes, dtype=np.int64)
        return self.values[codes]

    def facts(self, note: str = "") -> list[str]:
        """Return lines for the comment at the top of generated files."""
        lines = [f"A classifier of {self.features} features into {self.classes} classes, by tinybayes."]
        lines += [f"Price: {model_cost(self.net)}; entries are {self.form}."]
        lines += [f"Scores are {self.unit}."] + ([plain(note)] if note else [])
        return [*lines, f"Model {fingerprint(self.net)}."]

    @property
    def unit(self) -> str:
        """What a score means."""
        if self.values is None:
            return f"sums of 32-bit floats, within {upwards(self.float_error)} nats of the exact ones"
        exact = "as stored" if isinstance(self.form, Fixed) else "to which the levels of the codebook were rounded"
        return f"log p(x, class) in units of 2**{-self.fraction} nats, {exact}"

    @property
    def float_error(self) -> float:
        """A bound of the rounding error of a finite score that is added up in 32-bit floats, one term after another.

        Every partial sum is at most the sum of the magnitudes, and each addition and each entry rounds once.
        """
        count = len(self.terms.terms) + len(self.terms.common) + 2
        finite = 0.0
        for terms, rows in ((self.terms.terms, self.terms.rows), (self.terms.common, self.terms.entries)):
            ends = [*(t.first for t in terms), len(rows)]
            for a, b in pairwise(ends):
                part = rows[a:b]
                finite += float(np.abs(part[np.isfinite(part)]).max(initial=0.0))
        for constant in (self.terms.constant, self.terms.common_constant):
            finite += float(np.abs(constant[np.isfinite(constant)]).sum())
        return count * finite * 2.0**-23


def plan(net: BayesNet) -> Plan:
    """Lay out a classifier for export; raise when a device could not hold its codes or sums."""
    if not isinstance(net, BayesNet):
        remedy = "neural nets are written in C, C++, Arduino, MicroPython and ONNX, circuits in C"
        raise error("a Bayesian network with a class", type(net).__name__, where="export", remedy=remedy)
    formats = {cpd.format for cpd in net.cpds}
    form = next(iter(formats))
    if len(formats) > 1 or isinstance(form, Float):
        form = Float(32)
        net = replace(net, cpds=tuple(replace(c, table=form.encode(c.log_parameters), format=form) for c in net.cpds))
    terms = lay_out(net)
    largest = max((*terms.states, terms.classes))
    if largest > MAX_STATES:
        remedy = "merge states, or leave the column out"
        raise error(f"at most {MAX_STATES:,} states of a variable", f"{largest:,}", where="export", remedy=remedy)
    values, fraction = None, 0
    if isinstance(form, Fixed):
        values, fraction = np.empty(0, np.int64), form.fraction
    elif isinstance(form, Codebook):
        levels = integer_levels(net)
        values, fraction = levels.values, levels.fraction
    found = Plan(net, terms, form, values, fraction)
    if values is not None and found.reach > LARGEST:
        remedy = "quantise to fewer bits"
        raise error("sums of all tables below 2**31", f"{found.reach:,}", where="integer sums", remedy=remedy)
    return found


def fingerprint(net: BayesNet) -> str:
    """Return a short hash of everything that a prediction depends on."""
    digest = hashlib.sha256()
    for node, cpd in zip(net.nodes, net.cpds, strict=True):
        digest.update(repr((node, cpd.parents, cpd.format, cpd.table.shape)).encode())
        digest.update(np.ascontiguousarray(cpd.table).tobytes())
        if cpd.tree is not None:
            for part in (cpd.tree.split, cpd.tree.first, cpd.tree.children, cpd.tree.row):
                digest.update(part.tobytes())
    return digest.hexdigest()[:16]


def upwards(bound: float) -> str:
    """Write a bound with two digits, rounded up."""
    return f"{bound * 1.05 + 1e-300:.1e}"


def plain(value: object) -> str:
    """Return text that is safe in a comment of any language: one line of ASCII."""
    return " ".join(str(value).encode("ascii", "replace").decode().split())
