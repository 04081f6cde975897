"""Names and other text that is safe in generated code."""

import re

from tinybayes.errors import error

_WORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept const constexpr
const_cast continue decltype default delete do double dynamic_cast else enum explicit export extern false float for
friend goto if import inline int long module mutable namespace new noexcept not not_eq nullptr operator or or_eq
private protected public register reinterpret_cast requires restrict return short signed sizeof static static_assert
static_cast struct switch template this thread_local throw true try typedef typeid typename union unsigned using
virtual void volatile wchar_t while xor xor_eq main setup loop int8_t int16_t int32_t uint8_t uint16_t uint32_t
def del elif except finally from global in is lambda None nonlocal pass raise True False with yield async await
assert input output wire reg always assign begin end initial parameter integer real time logic
std int64_t uint64_t size_t stdint stdlib stdio stddef string math limits array cmath cstddef cstdint
Arduino micropython
function var let typeof instanceof debugger super extends implements interface package null undefined eval arguments
exports require globalThis tinybayesProgram atob Math Number Object String Array Map Uint8Array DataView Infinity NaN
NULL EOF NAN INFINITY errno unix linux offsetof char8_t co_await co_return co_yield abs exit free malloc printf puts
rand round signal
"""
RESERVED = frozenset(_WORDS.split())
# Types and limits of the C library.
_STANDARD = re.compile(r"(u?int|char|ptr|nullptr|wint|ss|off|pid|time)\w*_t|[A-Z0-9_]+_(MAX|MIN|C)")
LONGEST_NOTE = 2000  # characters of a comment
LONGEST = 63  # characters that C99 compilers must tell apart


def check_name(name: str, words: frozenset[str] = frozenset()) -> str:
    """Return the name of a model, which becomes a part of file names and identifiers; raise when it cannot.

    `words` are names that only one language reserves.
    """
    remedy = "choose letters, digits and underscores, beginning with a letter"
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,30}", name):
        raise error("a C identifier of at most 31 characters", repr(name), where="name", remedy=remedy)
    if name in RESERVED | words or _STANDARD.fullmatch(name) or "__" in name or name.endswith("_"):
        raise error("a name that no language reserves", repr(name), where="name", remedy=f"use {name.strip('_')}_model")
    return name


def identifier(text: object) -> str:
    """Turn any text into the middle of an identifier."""
    return re.sub(r"[^A-Za-z0-9]+", "_", str(text)).strip("_")[:LONGEST] or "x"


def plain(value: object) -> str:
    """Return text that is safe in a comment of any language: one line of printable ASCII, not too long.

    Within a comment, compilers warn of the marks that begin one, and of a backslash at the end.
    """
    line = "".join(c if " " <= c <= "~" else "?" for c in " ".join(str(value).split()))
    if len(line) > LONGEST_NOTE:
        line = f"{line[:LONGEST_NOTE]}..."
    line = re.sub(r"(?<=/)(?=\*)|(?<=\*)(?=/)", " ", line)
    return f"{line}." if line.endswith(("\\", "??/")) else line


def upwards(bound: float) -> str:
    """Write a bound with two digits, rounded up."""
    return f"{bound * 1.05 + 1e-300:.1e}"


class Names:
    """Distinct identifiers in capitals, for constants."""

    def __init__(self, used: set[str]) -> None:
        self.used = set(used)

    def make(self, *parts: object) -> str:
        """Join the parts; a name that was used before gets a number."""
        base = "_".join(identifier(part) for part in parts).upper()
        name, number = base, 2
        while name in self.used:
            name, number = f"{base}_{number}", number + 1
        self.used.add(name)
        return name
