"""C code from states to what enters the first layer: numbers as they are, scaled numbers, an image, or rows."""

from dataclasses import dataclass

import numpy as np

from tinybayes.deploy.programs._c import text
from tinybayes.deploy.programs._net_plan import NetPlan, Stage
from tinybayes.model import NeuralNet


@dataclass(frozen=True)
class Entry:
    """How values enter a layer, as a loop that finds a row ``r`` and a value ``x`` for it.

    Parameters
    ----------
    data, before
        Constants, and lines that come first.
    loop
        Heads of the loops, from the outer to the inner one.
    find
        Lines that set ``x``, unless it is always one, and whatever ``row`` needs.
    row
        The number of the row, as C text.
    total
        The sum of all values, where it is known beforehand; then every row is added as it is.
    """

    data: str
    before: str
    loop: tuple[str, ...]
    find: tuple[str, ...]
    row: str
    total: int | None = None


@dataclass(frozen=True)
class Term:
    """A column with numbers, or the columns of consecutive states of a feature; rows begin with `first`."""

    feature: int
    first: int
    low: int = 0
    states: int = 0

    @property
    def rows(self) -> slice:
        """The rows that may be added, one at a time."""
        return slice(self.first, self.first + max(1, self.states))


def terms(net: NeuralNet) -> list[Term]:
    """Join columns of consecutive states of a feature, of which at most one is seen."""
    found: list[Term] = []
    for i, (feature, state) in enumerate(zip(net.inputs.feature.tolist(), net.inputs.state.tolist(), strict=True)):
        last = found[-1] if found else Term(-1, 0)
        if last.states and last.feature == feature and last.low + last.states == state:
            found[-1] = Term(feature, last.first, last.low, last.states + 1)
        else:
            found.append(Term(feature, i, state, 1) if state >= 0 else Term(feature, i))
    return found


def first_entry(found: NetPlan, stage: Stage) -> Entry:
    """Choose how states enter a dense first layer."""
    net, parts = found.net, terms(found.net)
    assert stage.scale is not None
    plain = bool((stage.scale == 1).all())
    data, x = _feature(net, [term.feature for term in parts])
    loop = (f"for (i = 0; i < {len(parts)}U; ++i) {{",)
    if any(term.states for term in parts):
        data += text.array("first", text.unsigned(len(stage.codes)), np.array([term.first for term in parts]))
        cards = [net.variables[term.feature].cardinality for term in parts]
        if plain and all(term.states == k for term, k in zip(parts, cards, strict=True)):
            return Entry(data, "", loop, (), f"((uint32_t)first[i] + {x})", len(parts))
        return _mixed(stage, parts, plain, data, x, loop)
    if not plain:
        data += text.array("scale", text.unsigned(int(stage.scale.max())), stage.scale)
        x = f"(uint32_t)scale[i] * {x}"
    return Entry(data, "", loop, (f"const uint32_t x = {x};",), "i")


def _feature(net: NeuralNet, features: list[int]) -> tuple[str, str]:
    """Return constants, and what reads the state of the i-th of these features."""
    if features == list(range(len(features))):
        return "", "in[i]"
    return text.array("feature", text.unsigned(len(net.variables)), np.array(features)), "in[feature[i]]"


def _mixed(stage: Stage, parts: list[Term], plain: bool, data: str, x: str, loop: tuple[str, ...]) -> Entry:
    """Go through states and numbers one by one."""
    for name, numbers in (("states", [term.states for term in parts]), ("low", [term.low for term in parts])):
        data += text.array(name, text.unsigned(max(numbers)), np.array(numbers))
    lines = [
        f"uint32_t r = first[i], x = {x};",
        "if (states[i]) { /* one of so many states, from low on, or none of them */",
        "    r += x - low[i];",
        "    x = x - low[i] < states[i];",
        "}",
    ]
    if not plain:
        assert stage.scale is not None
        data += text.array("scale", text.unsigned(int(stage.scale.max())), stage.scale)
        lines += ["x = x ? x * scale[r] : 0;"]
    return Entry(data, "", loop, tuple(lines), "r")


def image_entry(found: NetPlan, stage: Stage) -> Entry:
    """Write states into an image with a border."""
    net, inputs = found.net, found.net.inputs
    assert stage.scale is not None
    assert stage.shift is not None
    rows, columns, _ = stage.shape
    value, size = text.unsigned(int(stage.peaks.max())), (rows + 2) * (columns + 2)
    data, x = _feature(net, inputs.feature.tolist())
    if (inputs.state >= 0).any():
        data += text.array("state", signed(inputs.state), inputs.state)
        x = f"(state[i] < 0 ? {x} : state[i] == (int32_t){x})"
    z = f"(uint32_t){x}"
    for name, values, neutral in (("scale", stage.scale, 1), ("shift", stage.shift, 0)):
        if (values == neutral).all():
            continue
        number = f"{int(values[0]) % 2**32}U"
        if len(np.unique(values)) > 1:
            data += text.array(name, signed(values), values)
            number = f"(uint32_t){name}[i]"
        z = f"{z} * {number}" if name == "scale" else f"{z} + {number}"
    before = f"    {value} z[{size}];\n"
    if value == "uint8_t":
        before += f"    surround(z, {size}U, {stage.pad});\n"
    else:
        before += f"    for (i = 0; i < {size}U; ++i) {{\n        z[i] = {stage.pad}U;\n    }}\n"
    before += (
        f"    for (i = 0; i < {rows * columns}U; ++i) {{\n"
        f"        z[(i / {columns}U + 1U) * {columns + 2}U + i % {columns}U + 1U] = ({value})({z});\n    }}\n"
    )
    return window(stage, data, before)


def window(stage: Stage, data: str = "", before: str = "") -> Entry:
    """Go through the 3 x 3 pixels from ``at`` on, with all channels."""
    width, step = 3 * stage.shape[2], (stage.shape[1] + 2) * stage.shape[2]
    loops = ("for (i = 0; i < 3U; ++i) {", f"for (j = 0; j < {width}U; ++j) {{")
    return Entry(data, before, loops, (f"const uint32_t x = at[{step}U * i + j];",), f"({width}U * i + j)")


def signed(values: np.ndarray) -> str:
    """Return the smallest signed type that holds all values."""
    low, high = int(values.min()), int(values.max())
    for kind in (np.int8, np.int16):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return f"{kind.__name__}_t"
    return "int32_t"
