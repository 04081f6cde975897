"""Small pieces of C text: arrays, types, comments."""

import math

import numpy as np

WIDTH = 110


def unsigned(limit: int) -> str:
    """Return the smallest unsigned type that holds numbers up to `limit`."""
    return "uint8_t" if limit < 2**8 else "uint16_t" if limit < 2**16 else "uint32_t"


def array(name: str, kind: str, values: np.ndarray) -> str:
    """Write a constant array with one or two axes."""
    shape = "".join(f"[{n}]" for n in values.shape)
    if values.ndim == 1:
        return f"static const {kind} {name}{shape} = {{\n{_lines(values)}\n}};\n"
    parts = ",\n".join(f"    {{\n{_lines(row)}\n    }}" for row in values)
    return f"static const {kind} {name}{shape} = {{\n{parts}\n}};\n"


def _lines(values: np.ndarray) -> str:
    if values.dtype.kind == "f":
        words = [number(v) for v in values.astype(np.float32).tolist()]
    elif values.dtype == np.uint32:
        words = [f"0x{v:X}U" for v in values.tolist()]
    else:
        words = [str(v) for v in values.tolist()]
    each = max(1, (WIDTH - 4) // (max(map(len, words), default=1) + 2))
    return ",\n".join("    " + ", ".join(words[i : i + each]) for i in range(0, len(words), each))


def number(value: float) -> str:
    """Write a float32 so that every compiler reads back the same bits."""
    if value == -math.inf:
        return "-INFINITY"
    text = f"{value:.9g}"
    return f"{text}F" if "." in text or "e" in text else f"{text}.0F"


def comment(*lines: str) -> str:
    """Write a comment; nothing in it can end it early."""
    safe = [line.replace("*/", "* /").replace("\\", "/").replace("??", "? ?") for line in lines]
    return "/* " + "\n * ".join(safe) + " */\n"
