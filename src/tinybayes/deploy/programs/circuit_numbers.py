"""The numbers that a circuit is computed with in the C family: pairs of integers, or 32-bit floats."""

from dataclasses import dataclass

from tinybayes.deploy.programs.program import Function, comment
from tinybayes.infer.integer_circuit import UNIT

MULTIPLY = """const uint64_t product = (uint64_t)a.m * b.m;
number r;
if (product >> 63) {
    r.m = (uint32_t)(product >> 32);
    r.e = (int16_t)(a.e + b.e + 32);
} else {
    r.m = (uint32_t)(product >> 31);
    r.e = (int16_t)(r.m ? a.e + b.e + 31 : 0);
}
return r;"""
ADD = """number t;
uint32_t sum;
int down;
if (b.m == 0) {
    return a;
}
if (a.m == 0) {
    return b;
}
if (b.e > a.e) {
    t = a;
    a = b;
    b = t;
}
down = a.e - b.e;
sum = a.m + (down > 31 ? 0U : b.m >> down);
if (sum < a.m) {
    sum = (sum >> 1) | 0x80000000U;
    a.e = (int16_t)(a.e + 1);
}
a.m = sum;
return a;"""
ABOVE = """if (a.m == 0 || b.m == 0) {
    return a.m > b.m;
}
return a.e == b.e ? a.m > b.m : a.e > b.e;"""
SHARE = f"""const int down = total.e - a.e;
return a.m == 0 || down > 63 ? 0U : (uint32_t)((((uint64_t)a.m << {UNIT}) / total.m) >> down);"""


@dataclass(frozen=True)
class Arithmetic:
    """Numbers of a circuit in C: their type, what can be done with them, and how they are read and written."""

    low: int  # exponent of the smallest number
    high: int  # exponent of the largest number
    last: float  # relative error of one rounding
    score: str  # the type of a posterior
    bytes: int  # of a number in the memory
    types: str  # the definition of ``number``
    members: str  # of the memory, with a gap for the number of slots
    bodies: tuple[str, str, str, str]  # of the functions multiply, add, above and share
    fixed: tuple[str, ...]  # lines that set ``s`` to the parameter ``k``
    start: tuple[str, ...]  # lines that set ``r`` to one for a ``product``, else to zero
    nought: tuple[str, ...]  # lines that set ``r`` to zero
    one: tuple[str, ...]  # lines that set ``s`` to one
    read: tuple[str, ...]  # lines that read ``s`` from the slot ``k`` of the memory
    write: tuple[str, ...]  # lines that write ``r`` there
    zero: str  # the condition that ``{r}`` is zero
    nothing: str  # a posterior of zero

    def functions(self) -> tuple[Function, ...]:
        """Make the functions that compute with numbers."""
        two = ("number a", "number b")
        heads = [("multiply", "number", two), ("add", "number", two), ("above", "int", two)]
        heads += [("share", self.score, ("number a", "number total"))]
        return tuple(Function(*head, tuple(body.splitlines())) for head, body in zip(heads, self.bodies, strict=True))


ARITHMETIC = {
    "integer": Arithmetic(
        low=-30_000,
        high=30_000,
        last=2.0**-30,
        score="uint32_t",
        bytes=6,
        types=comment("m * 2**e with the highest bit of m set, or m = 0; bits below the last one are cut off.")
        + "typedef struct {\n    uint32_t m;\n    int16_t e;\n} number;\n",
        members="    uint32_t m[{0}];\n    int16_t e[{0}];\n",
        bodies=(MULTIPLY, ADD, ABOVE, SHARE),
        fixed=("s.m = parameter_m[k];", "s.e = parameter_e[k];"),
        start=("r.m = product ? 0x80000000U : 0U;", "r.e = (int16_t)(product ? -31 : 0);"),
        nought=("r.m = 0U;", "r.e = 0;"),
        one=("s.m = 0x80000000U;", "s.e = -31;"),
        read=("s.m = memory->m[k];", "s.e = memory->e[k];"),
        write=("memory->m[k] = r.m;", "memory->e[k] = r.e;"),
        zero="{r}.m == 0",
        nothing="0U",
    ),
    "float": Arithmetic(
        low=-126,
        high=127,
        last=2.0**-24,
        score="float",
        bytes=4,
        types="typedef float number;\n",
        members="    float value[{0}];\n",
        bodies=("return a * b;", "return a + b;", "return a > b;", "return a / total;"),
        fixed=("s = parameter[k];",),
        start=("r = product ? 1.0F : 0.0F;",),
        nought=("r = 0.0F;",),
        one=("s = 1.0F;",),
        read=("s = memory->value[k];",),
        write=("memory->value[k] = r;",),
        zero="!({r} > 0.0F)",
        nothing="0.0F",
    ),
}
