"""C code that adds up the entries of all classes: packed codes in lanes, levels of a codebook, or floats."""

from dataclasses import dataclass
from itertools import groupby

import numpy as np

from tinybayes.deploy.programs._c import text
from tinybayes.deploy.programs._c.packing import Plane, planes
from tinybayes.deploy.programs._c.rows import Finder
from tinybayes.deploy.programs._plan import Plan
from tinybayes.model import Fixed


@dataclass(frozen=True)
class Sums:
    """Constant data and the body of a function that fills ``sum[classes]``; the type of a sum; which one wins."""

    data: str
    body: str
    kind: str
    better: str  # "<" where the smallest sum wins


@dataclass(frozen=True)
class _Arithmetic:
    """How packed codes are added up."""

    kind: str  # of a sum
    levels: bool  # whether a code stands for the level of a codebook, instead of for itself
    start: np.ndarray

    @property
    def accumulator(self) -> str:
        return "int32_t" if self.levels else "uint32_t"

    def number(self, value: int) -> str:
        return str(value) if self.levels else f"{value}U"


def class_sums(plan: Plan, find: Finder) -> Sums:
    """Write the sums over all terms.

    Fixed-point codes are minus log-probabilities, so that their smallest sum wins. They are added up in lanes.
    """
    if plan.values is None:
        return _float_sums(plan, find)
    start = plan.worth(plan.terms.constant).sum(axis=0)
    if isinstance(plan.form, Fixed):
        kind = "uint16_t" if plan.reach < 2**16 else "uint32_t"
        data, body = _packed(plan, find, _Arithmetic(kind, False, -start))
        return Sums(data, body, kind, "<")
    data, body = _packed(plan, find, _Arithmetic("int32_t", True, start))
    used = "level[" in body  # not where nothing that is seen tells the classes apart
    return Sums((text.array("level", "int32_t", plan.values) if used else "") + data, body, "int32_t", ">")


def _float_sums(plan: Plan, find: Finder) -> Sums:
    terms, classes = plan.terms, plan.classes
    constant = terms.constant.astype(np.float64).sum(axis=0).astype(np.float32)
    data = text.array("start", "float", constant)
    copy = f"    for (c = 0; c < {classes}U; ++c) {{\n        sum[c] = start[c];\n    }}\n"
    if not terms.terms:
        return Sums(data, f"    unsigned c;\n{copy}    (void)x;\n", "float", ">")
    body = (
        f"{find.before}    unsigned i, c;\n{find.call}{copy}"
        f"    for (i = 0; i < {len(terms.terms)}U; ++i) {{\n"
        f"        const float *entry = table + (uint32_t)({find.row}) * {classes}U;\n"
        f"        for (c = 0; c < {classes}U; ++c) {{\n            sum[c] += entry[c];\n        }}\n    }}\n"
    )
    return Sums(data + text.array("table", "float", terms.rows.reshape(-1)), body, "float", ">")


def _packed(plan: Plan, find: Finder, how: _Arithmetic) -> tuple[str, str]:
    """Write one loop over the terms for each bank: planes of one shape that follow each other."""
    terms, count = plan.terms, len(plan.terms.terms)
    if not count:
        return "", "".join(f"    sum[{c}] = {v};\n" for c, v in enumerate(how.start.tolist())) + "    (void)x;\n"
    largest = np.maximum.reduceat(terms.rows.max(axis=1), [t.first for t in terms.terms]).tolist()
    cut = planes(plan.classes, max(plan.form.bits, 1), largest, start=int(how.start.max()), lanes=not how.levels)
    banks = [list(group) for _, group in groupby(cut, key=lambda plane: (plane.shape, plane.count))]
    chunked = any(bank[0].shape.chunk < count for bank in banks)
    several = any(len(bank) > 1 for bank in banks)
    kind, data = text.unsigned(len(terms.rows)), ""
    body, fill, counters = find.before, find.call, ["g"] if several else []
    if not find.function:
        body += f"    {kind} row[{count}];\n"
        fill = f"    for (i = 0; i < {count}U; ++i) {{\n        row[i] = ({kind})({find.row});\n    }}\n"
    if chunked:
        data += text.array("start", text.unsigned(int(how.start.max())), how.start)
        fill += f"    for (i = 0; i < {plan.classes}U; ++i) {{\n        sum[i] = start[i];\n    }}\n"
    counters += ["i"] if "(i =" in fill else []
    body += f"    const {kind} *r{', *end' if chunked else ''};\n"
    body += (f"    unsigned {', '.join(counters)};\n" if counters else "") + fill
    for number, bank in enumerate(banks):
        words = np.stack([plane.words(terms.rows) for plane in bank])
        data += text.array(f"plane{number}", f"uint{words.itemsize * 8}_t", words if len(bank) > 1 else words[0])
        first = np.array([_first(plane, how) for plane in bank])
        if bank[0].shape.chunk < count:
            body += _chunks(number, bank, count, how)
        else:
            data += text.array(f"start{number}", how.accumulator, first) if len(bank) > 1 else ""
            body += _at_once(number, bank, count, how, first[0].tolist())
    return data, body


def _at_once(number: int, bank: list[Plane], terms: int, how: _Arithmetic, first: list[int]) -> str:
    """Write the loop over all terms for planes of one shape, whose accumulators begin with the start."""
    plane, several, pad = bank[0], len(bank) > 1, " " * 8
    out = _head(number, bank)
    for j, begin in enumerate(first):
        out += f"{pad}{how.accumulator} a{j} = {f'start{number}[g][{j}]' if several else how.number(begin)};\n"
    out += f"{pad}for (r = row; r < row + {terms}; ++r) {{\n" + _adds(number, bank, how, 12) + f"{pad}}}\n"
    lines = [] if how.levels else _untangle(plane)
    for i in range(plane.count):
        (lane, j), shape = plane.place(i), plane.shape
        value = f"a{j} >> {lane * shape.lane}" if lane else f"a{j}"
        if plane.count > (lane + 1) * shape.each + j:  # the next lane is in use
            value = f"{f'({value})' if lane else value} & 0x{(1 << shape.lane) - 1:X}U"
        place = f"{plane.first}U + {plane.count}U * g + {i}U" if several else f"{plane.first + i}"
        lines.append(
            f"sum[{place}] = ({how.kind})({value});" if how.kind != how.accumulator else f"sum[{place}] = {value};"
        )
    return out + _lines(lines, 8) + "    }\n"


def _chunks(number: int, bank: list[Plane], terms: int, how: _Arithmetic) -> str:
    """Write the loops over chunks of terms, after each of which the lanes are emptied."""
    plane, pad = bank[0], " " * 8
    shape, used = plane.shape, _used(plane)
    out = _head(number, bank) + f"{pad}r = row;\n{pad}do {{\n"
    out += f"{pad}    {how.accumulator} {', '.join(f'a{j} = 0' for j in range(used))};\n"
    out += f"{pad}    end = r + {shape.chunk};\n"
    if terms % shape.chunk:
        out += f"{pad}    if (end > row + {terms}) {{\n{pad}        end = row + {terms};\n{pad}    }}\n"
    out += f"{pad}    do {{\n" + _adds(number, bank, how, 16) + f"{pad}    }} while (++r < end);\n"
    first = f"{plane.first}U" + (f" + {plane.count}U * g" if len(bank) > 1 else "")
    empty = [f"for (i = {first}; i < {first} + {plane.count}U; i += {used}U) {{"]
    for j in range(used):
        place, value = f"sum[i + {j}U]" if j else "sum[i]", f"(a{j} & 0x{(1 << shape.lane) - 1:X}U)"
        empty += [f"    {place} = ({how.kind})({place} + {value});", f"    a{j} >>= {shape.lane};"]
    return out + _lines([*_untangle(plane), *empty, "}"], 12) + f"{pad}}} while (r < row + {terms});\n    }}\n"


def _head(number: int, bank: list[Plane]) -> str:
    out = f"    /* classes {bank[0].first} to {bank[-1].classes[-1]} */\n"
    if len(bank) == 1:
        return f"{out}    {{\n"
    kind = f"uint{bank[0].shape.width}_t"
    return f"{out}    for (g = 0; g < {len(bank)}U; ++g) {{\n        const {kind} *plane = plane{number}[g];\n"


def _adds(number: int, bank: list[Plane], how: _Arithmetic, pad: int) -> str:
    """Write what a word adds to the accumulators.

    Codes are cut out with as few operations as possible: the first accumulator takes whole words, and of a single lane
    the others take all that lies above them; `_untangle` puts this right at the end, when it costs little.
    """
    plane, used = bank[0], _used(bank[0])
    mask = (1 << plane.bits) - 1
    lines = [f"const uint32_t w = {'plane' if len(bank) > 1 else f'plane{number}'}[*r];"]
    for j in range(used):
        code = f"w >> {j * plane.bits}" if j else "w"
        if how.levels:
            whole = j == used - 1 and plane.count * plane.bits == plane.shape.width
            code = f"level[{code if whole else f'({code}) & 0x{mask:X}U' if j else f'w & 0x{mask:X}U'}]"
        elif j and plane.shape.lanes > 1:
            code = f"({code}) & 0x{sum(mask << lane * plane.shape.lane for lane in range(plane.shape.lanes)):X}U"
        lines.append(f"a{j} += {code};")
    return _lines(lines, pad)


def _untangle(plane: Plane) -> list[str]:
    """Write what takes from the accumulators the codes that lay above theirs."""
    used = _used(plane)
    if plane.shape.lanes == 1:
        lines = [f"a{j} -= a{j + 1} << {plane.bits};" for j in range(used - 1)]
    else:
        lines = [f"a0 -= a{j} << {j * plane.bits};" for j in range(1, used)]
    return ["/* what came along with the words */", *lines] if lines else []


def _first(plane: Plane, how: _Arithmetic) -> list[int]:
    """Return what the accumulators begin with so that the start comes out of them in the end."""
    values = [int(v) for v in how.start[list(plane.classes)]]
    if how.levels:
        return values
    used, found = _used(plane), [0] * _used(plane)
    for i, value in enumerate(values):
        lane, j = plane.place(i)
        for k in range(j + 1) if plane.shape.lanes == 1 else {0, j}:
            found[k] += value << lane * plane.shape.lane + (j - k) * plane.bits
    return [value % 2**32 for value in found[:used]]


def _used(plane: Plane) -> int:
    """Return the number of accumulators."""
    return min(plane.count, plane.shape.each)


def _lines(lines: list[str], pad: int) -> str:
    return "".join(f"{' ' * pad}{line}\n" for line in lines)
