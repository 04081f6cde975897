"""Tests of decision trees as conditions in C: a row as it is, compared with constants.

The bits of a float are compared as integers: those of positive numbers are in the order of the numbers, those of
negative ones, as unsigned integers, in the opposite order. The raw value of a state becomes its code in the test. A
missing value is the lowest integer, any NaN, or a code that is not a state; most often one comparison of unsigned
integers, which wrap around, tells it apart, too.
"""

import numpy as np

from tinybayes.deploy.programs.encoder import whole_function
from tinybayes.deploy.programs.program import Array, Dialect, Function
from tinybayes.deploy.programs.tree_layout import Test
from tinybayes.deploy.programs.tree_plan import TreePlan

BITS = "The bits of a float."
INFINITE = 0x7F800000  # the bits of infinity; those of NaNs are above
SIGN = 2**31
WORD = 32


class Conditions:
    """Writes tests as conditions; some need `functions` and `arrays`."""

    def __init__(self, plan: TreePlan, dialect: Dialect, table: str = "member") -> None:
        self.plan, self.dialect, self.gaps, self.table = plan, dialect, plan.features.gaps, table
        self.members: list[int] = []  # of sets that no constant holds
        self.reads_bits = self.reads_wholes = False
        self.holds_code = False  # whether a variable ``u`` is needed

    @property
    def functions(self) -> tuple[Function, ...]:
        """The functions that the conditions so far call."""
        functions = [whole_function(self.dialect)] if self.reads_wholes else []
        if self.reads_bits:
            body = (*self.dialect.float_bits, "return bits;")
            functions.append(Function("bits_of", "uint32_t", ("float value",), body, BITS, small=True))
        return tuple(functions)

    @property
    def variables(self) -> tuple[str, ...]:
        """The declarations that the conditions so far need."""
        return ("uint32_t u;",) if self.holds_code else ()

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The tables that the conditions so far read."""
        return (Array(self.table, np.array(self.members, dtype=np.uint8)),) if self.members else ()

    def left(self, test: Test) -> str:
        """Write the condition of rows that go left."""
        if self.plan.is_state(test.feature):
            return self._state(test)
        if test.members:
            return self._set(test)
        write = {"codes": self._code, "int": self._integer, "float": self._float}
        return write[self.plan.given](test)

    def _state(self, test: Test) -> str:
        """Test the code of a raw value; what is no state is missing or, where rows are complete, the first state."""
        low = self.plan.features.lowest(test.feature)
        value = f"value[{test.feature}]"
        if self.plan.given == "float":
            self.reads_wholes = True
            value = f"whole({value})"
        code = f"(uint32_t){value}" + (f" {'-' if low > 0 else '+'} {abs(low)}U" if low else "")
        if not test.members:
            return self._code(test, code)
        self.holds_code = True
        missing = test.missing if self.gaps else test.members[0]
        return self._set(test._replace(missing=missing), f"(u = {code})", "u")

    def _code(self, test: Test, read: str = "") -> str:
        """Test the code of a row, or the one that is read."""
        code = read or f"x[{test.feature}]"
        if not test.missing or not (self.gaps or read):
            return f"{code} <= {test.threshold}" if test.threshold else f"{code} == 0"
        states = self.plan.variables[test.feature].cardinality
        above = test.threshold + 1
        return f"{code} - {above}U >= {states - above}U"

    def _integer(self, test: Test) -> str:
        value, cut = f"value[{test.feature}]", self.plan.cut(test.feature, test.threshold)
        if not self.gaps or test.missing:
            return f"{value} < {cut}"
        if cut == SIGN:
            return f"{value} != INT32_MIN"
        return f"(uint32_t){value} + 0x7FFFFFFFU < {_word(cut + SIGN - 1)}"

    def _float(self, test: Test) -> str:
        self.reads_bits = True
        bits, key = f"bits_of(value[{test.feature}])", self.plan.cut(test.feature, test.threshold)
        if key > INFINITE:
            return f"{bits} << 1 <= {_word(2 * INFINITE)}"  # a number
        cut = key if key > 0 else SIGN - key  # the bits of the lowest number that goes right
        if not self.gaps:
            return f"(int32_t){bits} < {_word(cut, signed=True)}" if key > 0 else f"{bits} > {_word(cut)}"
        if key > 0:
            if test.missing:  # from the first NaN on to the end, and from zero to the cut
                return f"{bits} + {_word(-INFINITE - 1)} < {_word(cut - INFINITE - 1)}"
            return f"(int32_t){bits} < {_word(cut, signed=True)} && {bits} <= {_word(SIGN + INFINITE)}"
        if test.missing:
            return f"{bits} > {_word(cut)} || (int32_t){bits} > {_word(INFINITE, signed=True)}"
        return f"{bits} - {_word(cut + 1)} < {_word(INFINITE + SIGN - cut)}"

    def _set(self, test: Test, read: str = "", code: str = "") -> str:
        """Test the code of a row, or `code` after it was read."""
        states, code = len(test.members), code or f"x[{test.feature}]"
        if states <= WORD:
            mask = sum(1 << i for i, member in enumerate(test.members) if member)
            holds = f"(({_word(mask)} >> {code}) & 1U)"
        else:
            packed = np.packbits(test.members, bitorder="little").tolist()
            first = len(self.members)
            self.members += packed
            at = f"{first}U + ({code} >> 3)" if first else f"{code} >> 3"
            holds = f"(({self.table}[{at}] >> ({code} & 7)) & 1)"
        if not (self.gaps or read):
            return holds
        side = f">= {states}U ||" if test.missing else f"< {states}U &&"
        return f"{read or code} {side} {holds}"


def _word(number: int, *, signed: bool = False) -> str:
    """Write the last 32 bits of an integer."""
    return f"0x{number % 2**32:X}" + ("" if signed else "U")
