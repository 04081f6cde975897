"""Tests of decision trees as tables, for loops over nodes: the feature and the cut of each test.

A value goes left if it is below the cut. Missing values are the lowest ones, and go left at no expense; where one goes
right, one is subtracted before, and the lowest value becomes the highest. So codes are moved up by one where values may
be missing, and floats become keys: where many nodes are visited, before the first one. So do the raw values of states
that are tested, and then all tested features: keys, integers and codes stand in one array.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tinybayes.deploy.programs.encoder import key_function, whole_function
from tinybayes.deploy.programs.encoding import KEYS
from tinybayes.deploy.programs.program import Array, Dialect, Function, loop, narrow, narrowest
from tinybayes.deploy.programs.tree_layout import Layout
from tinybayes.deploy.programs.tree_plan import TreePlan

INFINITE = 0x7F800000  # the key of infinity
FILL, VISIT = 14, 8  # instructions, about: a feature is converted before all trees, or a float when it is tested


@dataclass(frozen=True, eq=False)
class Questions:
    """The tests of a program, as its loops ask them."""

    plan: TreePlan
    layout: Layout
    dialect: Dialect
    visits: float  # tests that a row is asked, about

    @cached_property
    def sets(self) -> bool:
        """Whether there are tests of sets."""
        return self.layout.thresholds < len(self.layout.tests)

    @cached_property
    def states(self) -> list[int]:
        """The tested features whose raw values are those of states."""
        return [feature for feature in self.layout.tested if self.plan.is_state(feature)]

    @cached_property
    def moved(self) -> bool:
        """Whether codes are moved up by one, to make room for missing values."""
        gaps = self.plan.features.gaps
        if self.plan.given != "codes":
            return bool(self.states) and gaps
        return gaps and (self.sets or self.layout.gaps_right > 0)

    @cached_property
    def converted(self) -> bool:
        """Whether all tested features are converted before the first test."""
        if self.plan.given == "float" and not self.states:
            return self.visits * VISIT > len(self.layout.tested) * FILL
        return self.moved or bool(self.states)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The tested features in the order of their conversion: those with states last."""
        return tuple(sorted(self.layout.tested, key=lambda feature: (feature in self.states, feature)))

    @cached_property
    def some_right(self) -> bool:
        """Whether a missing value goes right at some threshold, and is the lowest value."""
        lowest = self.moved or self.plan.given != "codes"
        return self.plan.features.gaps and lowest and self.layout.gaps_right < self.layout.thresholds

    @cached_property
    def _codes(self) -> np.ndarray:
        """Whether each threshold is one of codes."""
        tests = self.layout.tests[: self.layout.thresholds]
        return np.array([self.plan.given == "codes" or test.feature in self.states for test in tests], dtype=np.bool_)

    @cached_property
    def _keys(self) -> np.ndarray:
        """The lowest values that go right if one is not subtracted: codes, or raw values as the plan has them."""
        tests = zip(self.layout.tests, self._codes.tolist(), strict=False)
        cuts = [t.threshold + 1 + self.moved if codes else self.plan.cut(t.feature, t.threshold) for t, codes in tests]
        return np.array(cuts, dtype=np.int64)

    @cached_property
    def short(self) -> bool:
        """Whether the upper half of all keys of floats is enough, and codes fit in 16 bits."""
        keys = self._keys[~self._codes]
        few = all(self.plan.variables[feature].cardinality < 2**15 for feature in self.states)
        return self.plan.given == "float" and few and not (keys[keys <= INFINITE] & 0xFFFF).any()

    @cached_property
    def cuts(self) -> np.ndarray:
        """The lowest value that goes right at each threshold, in the narrowest type."""
        tests = self.layout.tests[: self.layout.thresholds]
        less = np.array([self.some_right and not test.missing for test in tests], dtype=np.int64)
        if self.plan.given == "codes":
            return narrow(self._keys - less)
        cuts = self._keys
        if self.short:
            cuts = np.where(self._codes, cuts, np.where(cuts > INFINITE, 2**15 - 1 + less, cuts // 2**16))
        cuts = cuts - less
        return cuts.astype(narrowest(int(cuts.min(initial=0)), int(cuts.max(initial=0)), KEYS))

    @cached_property
    def features(self) -> np.ndarray:
        """The feature of each test: its number, or among the converted ones."""
        tested = self.order if self.converted else range(len(self.plan.variables))
        number = {feature: i for i, feature in enumerate(tested)}
        return narrow([number[test.feature] for test in self.layout.tests])

    @property
    def functions(self) -> tuple[Function, ...]:
        """The functions that tests call."""
        if self.plan.given != "float":
            return ()
        keys = len(self.states) < len(self.layout.tested)
        functions = [key_function(self.dialect, gaps=self.plan.features.gaps)] if keys else []
        return (*functions, *([whole_function(self.dialect)] if self.states else []))

    @cached_property
    def element(self) -> str:
        """The C type of a number that is compared."""
        if self.plan.given == "codes":
            return self.plan.features.state
        return "int16_t" if self.short else "int32_t"

    @cached_property
    def tables(self) -> tuple[Array, ...]:
        """The tables of tests."""
        cuts, features = self.cuts, self.features
        if len(cuts) == len(features) and cuts.itemsize == features.itemsize:
            pairs = np.empty(len(cuts), [("feature", features.dtype), ("cut", cuts.dtype)])
            pairs["feature"], pairs["cut"] = features, cuts
            tables = [Array("test", pairs)]
        else:
            tables = [Array("test_feature", features)] + ([Array("test_cut", cuts)] if len(cuts) else [])
        if self.sets:
            tables.append(Array("member", self.members.reshape(-1)))
        return tuple(tables)

    @cached_property
    def members(self) -> np.ndarray:
        """The bytes of each set; a missing value is the first bit where codes are moved."""
        tests = self.layout.tests[self.layout.thresholds :]
        bits = np.zeros((len(tests), max(len(test.members) for test in tests) + self.moved), dtype=np.bool_)
        for row, test in zip(bits, tests, strict=True):
            row[0] = test.missing
            row[int(self.moved) : self.moved + len(test.members)] = test.members
        return np.packbits(bits, axis=1, bitorder="little")

    @property
    def before(self) -> list[str]:
        """Lines before all tests, the first of which declare; they need a counter ``i``."""
        return self._before[0]

    @property
    def before_tables(self) -> list[Array]:
        """The tables that these lines read."""
        return self._before[1]

    @cached_property
    def _before(self) -> tuple[list[str], list[Array]]:
        if not self.converted:
            return [], []
        lines, arrays = [f"{self.element} at[{len(self.order)}];"], []
        numbers = len(self.order) - len(self.states) if self.plan.given != "codes" else 0
        index = "i"
        if self.order != tuple(range(len(self.order))):
            arrays.append(Array("tested", narrow(self.order)))
            index = "tested[i]"
        if numbers:
            key = f"key(value[{index}])" if self.plan.given == "float" else f"value[{index}]"
            lines += loop("i", numbers, [f"at[i] = {f'(int16_t)({key} >> 16)' if self.short else key};"])
        if numbers < len(self.order):
            write, own = self._code_of(index, numbers)
            lines += loop("i", len(self.order), write, start=numbers)
            arrays += own
        return lines, arrays

    def _code_of(self, index: str, first: int) -> tuple[list[str], list[Array]]:
        """Write lines that set feature ``i`` from `first` on to its code, and name the tables that they read."""
        plan, features = self.plan, self.order[first:]
        name = f"[i - {first}U]" if first else "[i]"
        states = [plan.variables[feature].cardinality for feature in features]
        same = len(set(states)) == 1
        arrays = [] if same else [Array("states", narrow(states))]
        count = f"{states[0]}U" if same else f"states{name}"
        if plan.given == "codes":
            known = f"v < {count} ? v + 1U : 0U"
            return [f"const unsigned v = x[{index}];", f"at[i] = ({self.element})({known});"], arrays
        lowest = [plan.features.lowest(feature) for feature in features]
        value, less = f"value[{index}]", f"(uint32_t){lowest[0]}"
        value = f"whole({value})" if plan.given == "float" else value
        if len(set(lowest)) > 1:
            arrays.append(Array("state_low", narrow(lowest, signed=True)))
            less = f"(uint32_t)state_low{name}"
        value = f"(uint32_t){value}" + ("" if less == "(uint32_t)0" else f" - {less}")
        code = f"({self.element})v" if not self.moved else f"({self.element})(v + 1U)"
        missing = f"INT{16 if self.short else 32}_MIN" if self.moved else "0"
        return [f"const uint32_t v = {value};", f"at[i] = v < {count} ? {code} : {missing};"], arrays

    @property
    def row(self) -> tuple[str, str]:
        """The C type and the name of what is tested: the row, or its converted features."""
        return (self.element, "at") if self.converted else (self.plan.row, self.plan.row_name)

    def value(self, feature: str, less: str = "1U") -> str:
        """Write what is compared with a cut; one is subtracted if a missing value goes right, or `less` tells so."""
        value = f"{self.row[1]}[{feature}]"
        if self.plan.given == "float" and not self.converted:
            value = f"(key({value}) >> 16)" if self.short else f"key({value})"
        return f"({self.element})((uint32_t){value} - {less})" if self.some_right else value

    def right(self, k: str = "k") -> str:
        """Write the condition of rows that go right at test number `k`."""
        pairs = self.tables[0].name == "test"
        feature = f"test[{k}].feature" if pairs else f"test_feature[{k}]"
        code = f"{self.row[1]}[{feature}]"
        if self.states:  # a missing value is the lowest integer, and the first bit of a set
            code = f"((unsigned){code} & 0x7FFFU)" if self.short else f"((uint32_t){code} & 0x7FFFFFFFU)"
        outside = self._outside(k, code) if self.sets else ""
        sets, first = self.layout.thresholds, self.layout.gaps_right
        if not sets:
            return outside
        value = self.value(feature, f"(uint32_t)({k} >= {first}U)" if first else "1U")
        below = f"{value} >= {f'test[{k}].cut' if pairs else f'test_cut[{k}]'}"
        return f"{k} < {sets}U ? {below} : {outside}" if outside else below

    def _outside(self, k: str, value: str) -> str:
        """Write the condition that a code is none of a set."""
        width, first = self.members.shape[1], self.layout.thresholds
        row = f"{k} - {first}U" if first else k
        if width == 1:
            return f"!((member[{row}] >> {value}) & 1)"
        row = f"({row}) * {width}U" if first else f"{row} * {width}U"
        return f"!((member[{row} + ({value} >> 3)] >> ({value} & 7)) & 1)"
