"""Functions of generated C as closures, and a count of how often each block of statements runs."""

import math
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from tinybayes.deploy._price.expressions import REGISTERS, Expressions
from tinybayes.deploy._price.syntax import Node, declared_of, parse_parameter, walk
from tinybayes.deploy._price.values import Code, Run, Scope, bits_of, number_value, sequence, silent, store, wrap

RETURN, BREAK, CONTINUE = 1, 2, 3
UNROLLED = 8  # trips of the longest loop that may be written out
FREE = {"scale", "narrow", "spill8", "spill12"}  # kinds that are no statements of their own


class Maker(Expressions):
    """Makes one function: its statements, and the loops that the compiler would write out."""

    def make(self, body: Node) -> Code:
        inlined = self.name in self.machine.once
        entry = self.new_block()
        self.loops.append(Scope(entry))
        parameters = [parse_parameter(p) for p in self.function.parameters]
        slots = tuple(map(self.declare, parameters))
        changed = {n.parts[0].text for n in walk(body) if n.kind in ("assign", "before", "after")}
        for i, (slot, parameter) in enumerate(zip(slots, parameters, strict=True)):
            if (self.name, i) in self.machine.given and parameter.name not in changed:
                self.known[slot] = self.machine.given[self.name, i]
        run = self.statements(body, entry)
        scope = self.loops.pop()
        self.spill(scope)
        tally = self.machine.tallies[entry]
        tally[f"{self.prices}base"] += len(self.bases)
        tally[f"{self.prices}constant"] += len(self.wide)
        if not inlined:
            tally[f"{self.prices}function"] += 1
            tally[f"{self.prices}local"] += min(len(scope.all), REGISTERS[0])
            tally[f"{self.prices}frame"] += self.arrays > 0
        blocks, names, calls = tuple(self.blocks), frozenset(scope.all), frozenset(self.calls)
        pressure = self.pressure or sum("@" in name and "." not in name for name in names)
        return Code(self.name, blocks, slots, self.size, run, self.arrays, names, pressure, calls, inlined)

    def statements(self, node: Node, block: int) -> Run:
        """Make a list of statements that runs as one block."""
        around, self.block = self.block, block
        loaded, self.loaded = self.loaded, set(self.loaded)
        self.scopes.append({})
        parts = node.parts if node.kind == "block" else (node,)
        runs = []
        for i, part in enumerate(parts, start=1):
            runs.append(self.statement(part))
            if self.prices and part.kind == "if" and i < len(parts) and any(n.kind == "return" for n in walk(part)):
                runs.append(self.statements(Node("block", "", parts[i:]), self.new_block()))  # it may not be reached
                break
        self.scopes.pop()
        self.block, self.loaded = around, loaded & self.loaded
        hits = self.machine.hits

        def run(f: list[Any]) -> int | None:
            hits[block] += 1
            for each in runs:
                if signal := each(f):
                    return int(signal)
            return None

        return run

    def statement(self, node: Node) -> Run:
        if node.kind == "block":
            inner = self.statements(node, self.block)
            hits, block = self.machine.hits, self.block

            def same(f: list[Any]) -> Any:
                hits[block] -= 1  # it belongs to the block around it
                return inner(f)

            return same
        if node.kind == "expression":
            return silent(self.expression(node.parts[0]).run)
        made: dict[str, Callable[[Node], Run]] = {
            "declare": self.declaration,
            "if": self.branch,
            "for": self.loop_for,
            "while": self.loop_while,
            "do": self.loop_do,
            "return": self.returned,
        }
        if node.kind in made:
            return made[node.kind](node)
        signal = {"break": BREAK, "continue": CONTINUE, "empty": 0}[node.kind]
        return lambda f: signal

    def declaration(self, node: Node) -> Run:
        runs = []
        for part in node.parts:
            declared = declared_of(part)
            value = self.expression(part.parts[0]) if part.parts else None
            if declared.axes:
                size = math.prod(declared.axes)
                slot = self.declare(declared._replace(stars=declared.stars + 1, axes=()))
                self.arrays += -(-size * bits_of(declared.base) // 32) * 4
                runs.append(store(slot, _zeros(size)))
                continue
            if value is not None and declared.stars and declared.base.startswith("struct"):
                declared = declared._replace(base=value.kind.lstrip("*"))
            slot = self.declare(declared)
            kind = self.scopes[-1][declared.name][1]
            if value is not None and declared.fixed and value.constant is not None:
                self.known[slot] = wrap(value.run, value.kind, kind)([])
            elif value is not None:
                if value.constant is not None or part.parts[0].kind == "variable":
                    self.tally("move")
                runs.append(store(slot, wrap(value.run, value.kind, kind)))
            elif declared.base == "union":
                runs.append(store(slot, lambda f: 0))
        return sequence(runs)

    def branch(self, node: Node) -> Run:
        test = self.truth(node.parts[0])
        arms = [self.statements(part, self.new_block()) for part in node.parts[1:]]
        if len(arms) == 1:
            return lambda f: arms[0](f) if test(f) else None
        return lambda f: arms[0](f) if test(f) else arms[1](f)

    def _body(self, node: Node, block: int, *around: Node, tests: int | None = None) -> tuple[list[Run], Run]:
        """Make the body of a loop; the expressions around it run as often, unless their block is `tests`."""
        self.loaded.clear()
        self.tally("loop")
        before, self.block = self.block, block if tests is None else tests
        self.loops.append(Scope(block))
        runs = [self.expression(part).run if part.kind != "empty" else (lambda f: True) for part in around]
        self.tally("branch")
        body = self.statements(node, block)
        scope = self.loops.pop()
        self.spill(scope)
        self.pressure = max(self.pressure, sum("@" in name for name in scope.all))
        self.block = before
        return runs, body

    def loop_for(self, node: Node) -> Run:
        self.scopes.append({})
        trips = self.trips(node)
        run = self.unrolled(node, trips) if trips and self.unrolls(node, trips) else self.counted(node)
        self.scopes.pop()
        return run

    def counted(self, node: Node) -> Run:
        start, test, step, inner = node.parts
        begin = self.statement(start)
        (check, advance), body = self._body(inner, self.new_block(), test, step)

        def run(f: list[Any]) -> int | None:
            begin(f)
            while check(f):
                if (signal := body(f)) and signal != CONTINUE:
                    return RETURN if signal == RETURN else None
                advance(f)
            return None

        return run

    def trips(self, node: Node) -> range:
        """Return the numbers that the counter of a loop takes, where they are constant and few."""
        start, test, step, _ = node.parts
        begin = start.parts[0] if start.kind == "expression" else start
        heads = begin.kind == "assign" and test.kind == "binary" and test.text == "<" and step.kind == "before"
        if not heads or begin.parts[0] != test.parts[0] or begin.parts[0] != step.parts[0]:
            return range(0)
        ends = begin.parts[1], test.parts[1]
        if any(end.kind != "number" for end in ends) or self.find(begin.parts[0].text) is None:
            return range(0)
        first, last = (int(number_value(end).constant or 0) for end in ends)
        return range(first, last) if last - first <= UNROLLED else range(0)

    def unrolls(self, node: Node, trips: range) -> bool:
        """Tell whether the compiler writes out a loop: the code does not grow, with the constants that it knows then.

        As in GCC a third of the copies is taken to disappear.
        """
        calls = any(part.kind == "call" for part in walk(node))  # a trial must not make functions
        return len(trips) == 1 or (not calls and self.volume(node, trips) * 2 / 3 <= self.volume(node, None))

    def volume(self, node: Node, trips: range | None) -> float:
        """Make a loop on trial; return how much is written."""
        kept = deepcopy((self.loops, self.loaded, self.bases, self.wide, self.blocks, self.machine.tallies[self.block]))
        tables, arrays, count = dict(self.machine.tables), self.arrays, len(self.machine.tallies)
        self.machine.tallies[self.block].clear()
        if trips is None:
            self.counted(node)
        else:
            self.unrolled(node, trips)
        made = [self.machine.tallies[self.block], *self.machine.tallies[count:]]
        volume = sum(number for tally in made for kind, number in tally.items() if kind not in FREE)
        del self.machine.tallies[count:], self.machine.hits[count:]
        self.loops, self.loaded, self.bases, self.wide, self.blocks, self.machine.tallies[self.block] = kept
        self.machine.tables, self.arrays = tables, arrays
        return volume

    def unrolled(self, node: Node, trips: range) -> Run:
        slot, _ = self._slot(node.parts[0].parts[0].parts[0])
        runs = []
        for value in trips:
            self.known[slot] = value
            runs.append(self.statement(Node("block", "", (node.parts[3],))))
        del self.known[slot]

        def run(f: list[Any]) -> int | None:
            for each in runs:
                if (signal := each(f)) and signal != CONTINUE:
                    return RETURN if signal == RETURN else None
            f[slot] = trips.stop
            return None

        return run

    def loop_while(self, node: Node) -> Run:
        tests, hits = self.new_block(), self.machine.hits
        (check,), body = self._body(node.parts[1], self.new_block(), node.parts[0], tests=tests)

        def run(f: list[Any]) -> int | None:
            hits[tests] += 1
            while check(f):
                hits[tests] += 1
                if (signal := body(f)) and signal != CONTINUE:
                    return RETURN if signal == RETURN else None
            return None

        return run

    def loop_do(self, node: Node) -> Run:
        (check,), body = self._body(node.parts[1], self.new_block(), node.parts[0])

        def run(f: list[Any]) -> int | None:
            while True:
                if (signal := body(f)) and signal != CONTINUE:
                    return RETURN if signal == RETURN else None
                if not check(f):
                    return None

        return run

    def returned(self, node: Node) -> Run:
        value = self.expression(node.parts[0]).run if node.parts else lambda f: None
        if self.prices:
            self.tally("return")

        def run(f: list[Any]) -> int:
            f[0] = value(f)
            return RETURN

        return run


def _zeros(size: int) -> Run:
    return lambda f: ([0] * size, 0)
