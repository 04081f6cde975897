"""Decision trees as Verilog-2001: all tests at once, a choice at every node, a tree of adders for each class."""

from itertools import groupby

import numpy as np

from tinybayes.cost.tree_ensemble import find_tests
from tinybayes.deploy.programs.plan import rows_with_every_state
from tinybayes.deploy.programs.tree_parts import inner_nodes, split_trees
from tinybayes.deploy.programs.tree_plan import make_tree_plan
from tinybayes.deploy.programs.verilog_netlist import Netlist, answer, best_function, clock_ports, test_bench
from tinybayes.deploy.programs.verilog_ports import Ports, number, side_by_side, signed_bits
from tinybayes.errors import error
from tinybayes.infer.trees import tree_scores
from tinybayes.model import TreeEnsemble

MAX_NODES = 2**16  # each is a line
MAX_NUMBERS = 2**22  # of all leaves


def trees_to_verilog(model: TreeEnsemble, *, name: str, note: str, pipelined: bool, checks: int) -> dict[str, str]:
    """Write trees as a module, with a test bench that checks itself, as `to_verilog` says.

    The scores are those of `tinybayes.infer.trees.tree_scores`, bit for bit.
    """
    plan = make_tree_plan(model)
    _check_sizes(model)
    module = _Module(model, pipelined)
    body = module.text()
    more, clock = clock_ports(module.netlist)
    if pipelined:
        more.insert(
            0, "The first clock makes all tests, the second the choices of all trees, the others add and compare."
        )
    files = {f"{name}.v": module.ports.head(name, plan.facts(note), more, clock) + body}
    if checks:
        rows = rows_with_every_state(tuple(v.cardinality for v in model.variables), checks)
        scores = tree_scores(model, rows).tolist()
        files[f"{name}_tb.v"] = test_bench(module.netlist, module.ports, name, rows.tolist(), scores)
    return files


class _Module:
    """A module: the names and widths of its parts, and their text."""

    def __init__(self, model: TreeEnsemble, pipelined: bool) -> None:
        self.model, self.netlist = model, Netlist(pipelined)
        self.parts = split_trees(model)
        self.ports = Ports(model.variables, model.target, model.reach.bit_length() + 1)

    def text(self) -> str:
        """Write everything behind the ports."""
        net, ports = self.netlist, self.ports
        sums = self._sums(self._trees(self._tests()))
        net.alias("total", ports.outputs, f"{{{', '.join(reversed(sums))}}}")
        end = answer(net, ports)
        return best_function(ports) + "\n" + net.text() + end

    def _tests(self) -> dict[int, str]:
        """Name the tests, and return that of each node; nodes whose test is the same for all codes have none."""
        trees, tests = self.model.trees, find_tests(self.model.trees)
        asked: dict[str, list[int]] = {}  # the tests that ask the same of codes
        for test, node in enumerate(tests.node.tolist()):
            left = self._codes_left(node)
            if 0 < left.sum() < len(left):
                asked.setdefault(self._condition(int(trees.feature[node]), left), []).append(test)
        names = self.netlist.level("test", 1, list(asked))
        of_test = {test: name for name, same in zip(names, asked.values(), strict=True) for test in same}
        return {node: of_test[test] for node, test in enumerate(tests.number.tolist()) if test in of_test}

    def _codes_left(self, node: int) -> np.ndarray:
        """Return the codes of a feature that go left."""
        trees = self.model.trees
        codes = np.arange(self.model.variables[trees.feature[node]].cardinality)
        if trees.is_set[node]:
            return np.asarray(trees.members[int(trees.is_set[:node].sum())][: len(codes)])
        return codes <= trees.threshold[node]

    def _condition(self, feature: int, left: np.ndarray) -> str:
        """Write whether a code is one of these: runs of neighbours."""
        width, low = self.ports.width[feature], self.ports.low[feature]
        code, runs = f"x[{low} +: {width}]", []
        for chosen, run in groupby(range(len(left)), key=lambda c: bool(left[c])):
            first, *_, last = (*run,) * 2
            if not chosen:
                continue
            below, above = f"{code} <= {width}'d{last}", f"{code} >= {width}'d{first}"
            inside = f"{code} == {width}'d{first}" if first == last else f"{above} && {below}"
            runs.append(below if first == 0 else above if last == len(left) - 1 else inside)
        return " || ".join(runs)

    def _trees(self, tests: dict[int, str]) -> list[list[str]]:
        """Choose a value in every tree, from the leaves up, and return the values that are added for each class.

        The scores that rows begin with are in the values of the first tree of a class.
        """
        net, start = self.netlist, self.parts.start.copy()
        added: list[list[str]] = [[] for _ in start]
        net.levels += 1
        for i, (tree, output) in enumerate(zip(self.parts.trees, self.parts.output.tolist(), strict=True)):
            classes = range(self.ports.classes) if output < 0 else range(output, output + 1)
            values = self.model.values + start[classes.start : classes.stop]
            start[classes.start : classes.stop] = 0
            lane = signed_bits(values[self._rows(tree)])
            name = net.value(f"tree{i}", lane * len(classes), self._choice(tree, tests, values, lane))
            for k, c in enumerate(classes):
                added[c].append(f"$signed({name}[{k * lane} +: {lane}])" if len(classes) > 1 else f"$signed({name})")
        return added

    def _rows(self, tree: int) -> list[int]:
        """Return the rows of values that the leaves of a tree have."""
        trees = self.model.trees
        below = [int(trees.child[node]) + side for node in inner_nodes(self.model, tree) for side in (0, 1)]
        return [int(trees.threshold[node]) for node in below if trees.is_leaf[node]]

    def _choice(self, tree: int, tests: dict[int, str], values: np.ndarray, lane: int) -> str:
        """Write the choice at the root of a tree; those at other nodes have names."""
        trees, wide = self.model.trees, lane * values.shape[1]
        chosen: dict[int, str] = {}

        def value(node: int) -> str:
            known = chosen.get(node)
            return known or number(side_by_side(values[trees.threshold[node]].tolist(), lane), wide)

        root = int(trees.root[tree])
        for node in reversed(inner_nodes(self.model, tree)):
            left, right = (int(trees.child[node]) + side for side in (0, 1))
            if node not in tests:
                chosen[node] = value(left if self._codes_left(node).any() else right)
                continue
            choice = f"{tests[node]} ? {value(left)} : {value(right)}"
            chosen[node] = choice if node == root else self.netlist.alias(f"node{node}", wide, choice)
        return chosen[root]

    def _sums(self, added: list[list[str]]) -> list[str]:
        """Add up the values for each class, level by level, and return the sums."""
        net, size = self.netlist, self.ports.size
        while max(map(len, added)) > 1:
            net.levels += 1
            for c, values in enumerate(added):
                pairs = [" + ".join(values[i : i + 2]) for i in range(0, len(values), 2)]
                names = [net.value(f"sum{net.levels}_{c}_{i}", size, pair) for i, pair in enumerate(pairs)]
                added[c] = [f"$signed({name})" for name in names]
        starts = [number(value, size) for value in self.parts.start.tolist()]
        return [net.alias(f"score{c}", size, values[0]) if values else starts[c] for c, values in enumerate(added)]


def _check_sizes(model: TreeEnsemble) -> None:
    """Raise when there is too much to be logic."""
    remedy = "export to C, which keeps trees in memory"
    nodes = int((~model.trees.is_leaf).sum())
    if nodes > MAX_NODES:
        raise error(f"at most {MAX_NODES:,} tests in trees", f"{nodes:,}", where="verilog", remedy=remedy)
    numbers = int(model.trees.is_leaf.sum()) * model.values.shape[1]
    if numbers > MAX_NUMBERS:
        raise error(f"at most {MAX_NUMBERS:,} numbers of leaves", f"{numbers:,}", where="verilog", remedy=remedy)
