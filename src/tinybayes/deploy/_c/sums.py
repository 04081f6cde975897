"""C code that adds up the entries of all classes: packed codes in lanes, levels of a codebook, or floats."""

from dataclasses import dataclass
from itertools import groupby

import numpy as np

from tinybayes.deploy._c import text
from tinybayes.deploy._c.packing import Plane, planes
from tinybayes.deploy._c.rows import Finder
from tinybayes.deploy._plan import Plan
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
    accumulator: str
    term: str  # what a code adds
    paired: bool
    better: str


def class_sums(plan: Plan, find: Finder) -> Sums:
    """Write the sums over all terms, in the narrowest arithmetic that is safe.

    Fixed-point codes are minus log-probabilities, so that their smallest sum wins. When the largest possible sum is
    below 2**16, two classes share a 32-bit accumulator.
    """
    if plan.values is None:
        return _float_sums(plan, find)
    if isinstance(plan.form, Fixed):
        narrow = plan.reach < 2**16
        how = _Arithmetic("uint16_t" if narrow else "uint32_t", "uint32_t", "{code}", narrow, "<")
        start = -plan.worth(plan.terms.constant).sum(axis=0)
        return _packed(plan, find, how, start)
    how = _Arithmetic("int32_t", "int32_t", "level[{code}]", False, ">")
    found = _packed(plan, find, how, plan.worth(plan.terms.constant).sum(axis=0))
    return Sums(text.array("level", "int32_t", plan.values) + found.data, found.body, found.kind, found.better)


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


def _packed(plan: Plan, find: Finder, how: _Arithmetic, start: np.ndarray) -> Sums:
    """Write one loop over the terms for each bank: planes of one shape that follow each other."""
    terms = plan.terms
    if not terms.terms:
        lines = "".join(f"    sum[{c}] = {v};\n" for c, v in enumerate(start.tolist()))
        return Sums("", f"{lines}    (void)x;\n", how.kind, how.better)
    cut = planes(plan.classes, max(plan.form.bits, 1), paired=how.paired)
    banks = [list(group) for _, group in groupby(cut, key=lambda p: (p.width, p.shifts, p.paired))]
    several = any(len(bank) > 1 for bank in banks)
    data, body = "", f"{find.before}    unsigned i{', g' if several else ''};\n{find.call}"
    for number, bank in enumerate(banks):
        words = np.stack([plane.words(terms.rows) for plane in bank])
        starts = np.array([_start(plane, start) for plane in bank])
        data += text.array(f"plane{number}", f"uint{bank[0].width}_t", words if len(bank) > 1 else words[0])
        if len(bank) > 1:
            kind = np.uint32 if how.accumulator == "uint32_t" else np.int64
            data += text.array(f"start{number}", how.accumulator, starts.astype(kind))
        body += _loop(number, bank, starts[0], len(terms.terms), find, how)
    return Sums(data, body, how.kind, how.better)


def _start(plane: Plane, start: np.ndarray) -> list[int]:
    """Return the first value of each accumulator."""
    first = [int(v) for v in start[list(plane.classes)]]
    half = len(first) // 2
    return [a | b << 16 for a, b in zip(first[:half], first[half:], strict=True)] if plane.paired else first


def _loop(number: int, bank: list[Plane], start: np.ndarray, terms: int, find: Finder, how: _Arithmetic) -> str:
    """Write the loop over the terms for the planes of one shape; of several planes, inside a loop over them."""
    plane, several, pad = bank[0], len(bank) > 1, " " * 8
    count = len(plane.shifts) // 2 if plane.paired else len(plane.shifts)
    suffix = "U" if how.accumulator == "uint32_t" else ""
    out = f"    /* classes {plane.first} to {bank[-1].classes[-1]} */\n"
    out += f"    for (g = 0; g < {len(bank)}U; ++g) {{\n" if several else "    {\n"
    source = "plane" if several else f"plane{number}"
    out += f"{pad}const uint{plane.width}_t *plane = plane{number}[g];\n" if several else ""
    for j in range(count):
        first = f"start{number}[g][{j}]" if several else f"{start[j]}{suffix}"
        out += f"{pad}{how.accumulator} a{j} = {first};\n"
    out += f"{pad}for (i = 0; i < {terms}U; ++i) {{\n{pad}    const uint32_t w = {source}[{find.row}];\n"
    out += "".join(f"{pad}    a{j} += {how.term.format(code=_code(plane, j))};\n" for j in range(count)) + f"{pad}}}\n"
    for i in range(len(plane.shifts)):
        value = f"a{i % count} >> 16" if i >= count else f"a{i}"
        value = f"({how.kind})({value})" if how.kind != how.accumulator else value
        place = f"{plane.first}U + {len(plane.shifts)}U * g + {i}U" if several else f"{plane.first + i}"
        out += f"{pad}sum[{place}] = {value};\n"
    return out + "    }\n"


def _code(plane: Plane, j: int) -> str:
    """Write what cuts a code, or a pair of them, out of a word."""
    shift, mask = plane.shifts[j], (1 << plane.bits) - 1
    shifted = f"w >> {shift}" if shift else "w"
    if not plane.paired and shift + plane.bits == plane.width:
        return shifted
    return f"{f'({shifted})' if shift else shifted} & 0x{mask | mask << 16 if plane.paired else mask:X}U"
