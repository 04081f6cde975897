"""Small faults to plant in the package: one operator, constant, condition or statement of a function changed.

Docstrings, annotations, decorators, default values and texts are left alone, and so is code outside functions.
"""

import ast
import hashlib
from collections.abc import Container, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType
from typing import Any

COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
    ast.MatMult: ast.Mult,
}
OTHER_NAME = {"min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum", "maximum": "minimum"}
SKIPPED = {"annotation", "returns", "decorator_list", "args", "format_spec", "type_params"}


@dataclass(frozen=True)
class Mutant:
    """A fault: where it is, and what stands there before and after."""

    file: str
    function: str
    lines: tuple[int, int]  # from the first line of its statement to its own last
    operator: str
    before: str
    after: str
    number: int  # of those that read alike in one function
    code: CodeType | None  # of the function that holds it

    @property
    def key(self) -> str:
        """A name that stays when lines move."""
        more = f" #{self.number}" if self.number else ""
        return f"{self.file}:{self.function}: {self.before} -> {self.after}{more}"


def mutants(path: Path, name: str, compiled: Container[str] = ()) -> Iterator[Mutant]:
    """Yield every mutant of a module, called `name` in the results; those whose keys are asked for are compiled."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    seen: dict[tuple[str, str, str], int] = {}
    for function, qualified in functions(tree):
        first = min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
        for owner, field, place, node, start in _nodes(function, function.lineno):
            for operator, new in _alternatives(owner, field, node):
                before, after = _text(owner, node), _text(owner, new)
                number = seen[qualified, before, after] = seen.get((qualified, before, after), -1) + 1
                lines = (start, node.end_lineno or start)
                mutant = Mutant(name, qualified, lines, operator, before, after, number, None)
                if mutant.key in compiled:
                    _put(owner, field, place, ast.fix_missing_locations(ast.copy_location(new, node)))
                    code = _find(compile(tree, str(path), "exec"), qualified, first)
                    _put(owner, field, place, node)
                    mutant = replace(mutant, code=code)
                yield mutant


def sample(found: list[Mutant], count: int, seed: int) -> list[Mutant]:
    """Draw mutants: by a hash of their names, so that a change elsewhere in the file draws no others."""

    def rank(mutant: Mutant) -> bytes:
        return hashlib.sha256(f"{seed} {mutant.key}".encode()).digest()

    return sorted(found, key=rank)[:count]


def functions(tree: ast.Module) -> Iterator[tuple[ast.FunctionDef, str]]:
    """Yield the functions and methods of a module with their qualified names; those inside others are part of them."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node, node.name
        elif isinstance(node, ast.ClassDef):
            yield from ((part, f"{node.name}.{part.name}") for part in node.body if isinstance(part, ast.FunctionDef))


def _nodes(owner: ast.AST, start: int) -> Iterator[tuple[ast.AST, str, int | None, Any, int]]:
    """Yield what lies below a node, with the place where it hangs and the first line of its statement."""
    for field, value in ast.iter_fields(owner):
        if field in SKIPPED and not isinstance(owner, ast.Call):
            continue
        for place, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(node, ast.AST) or isinstance(node, ast.expr_context) or _is_docstring(node):
                continue
            first = node.lineno if isinstance(node, ast.stmt) else start
            if isinstance(node, ast.expr | ast.stmt):
                yield owner, field, place, node, first
            yield from _nodes(node, first)


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _alternatives(owner: ast.AST, field: str, node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    match node:
        case ast.Compare(left=left, ops=[*ops], comparators=others):
            for place, op in enumerate(ops):
                for new in COMPARED[type(op)]:
                    changed: list[ast.cmpop] = [*ops[:place], new(), *ops[place + 1 :]]
                    yield "comparison", ast.Compare(left, changed, others)
        case ast.BoolOp(op=op, values=values):
            yield "and/or", ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in COMPUTED:
            yield "arithmetic", ast.BinOp(left, COMPUTED[type(op)](), right)
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert(), operand=operand):
            yield "unary", operand
        case ast.Constant(value=bool(value)):
            yield "constant", ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield from (("constant", _number(value + step)) for step in (1, -1))
        case ast.Name(id=name) if isinstance(owner, ast.Call) and field == "func" and name in OTHER_NAME:
            yield "function", ast.Name(OTHER_NAME[name], node.ctx)
        case ast.Attribute(value=value, attr=name) if field == "func" and name in OTHER_NAME:
            yield "function", ast.Attribute(value, OTHER_NAME[name], node.ctx)
        case ast.Slice(lower=lower, upper=upper, step=step):
            if lower is not None:
                yield "slice", ast.Slice(None, upper, step)
            if upper is not None:
                yield "slice", ast.Slice(lower, None, step)
        case _:
            yield from _statements(node)
    if field == "test" and not isinstance(node, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.Constant):
        yield "condition", ast.UnaryOp(ast.Not(), node)


def _statements(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    match node:
        case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield "return None", ast.Return(ast.Constant(None))
        case ast.AugAssign(target=target, op=op, value=value):
            if type(op) in COMPUTED:
                yield "arithmetic", ast.AugAssign(target, COMPUTED[type(op)](), value)
            yield "removed", ast.Pass()
        case ast.Raise() | ast.Expr(value=ast.Call()) | ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "removed", ast.Pass()
        case ast.Break():
            yield "jump", ast.Continue()
        case ast.Continue():
            yield "jump", ast.Break()


def _number(value: float) -> ast.expr:
    return ast.Constant(value) if value >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-value))


def _text(owner: ast.AST, node: ast.AST) -> str:
    """Show a node; a constant or a name with what it stands in, since alone it would say little."""
    text = ast.unparse(ast.fix_missing_locations(node))
    if isinstance(node, ast.Constant | ast.UnaryOp | ast.Name | ast.Slice | ast.Attribute) and isinstance(
        owner, ast.expr
    ):
        around = ast.unparse(owner)
        return f"{text} in {around if len(around) <= 80 else around[:77] + '...'}"
    text = " ".join(text.split())
    return text if len(text) <= 160 else text[:157] + "..."


def _put(owner: ast.AST, field: str, place: int | None, node: ast.AST) -> None:
    if place is None:
        setattr(owner, field, node)
    else:
        getattr(owner, field)[place] = node


def _find(code: CodeType, qualified: str, first_line: int) -> CodeType | None:
    """Return the code of a function within that of its module."""
    for part in code.co_consts:
        if isinstance(part, CodeType):
            if part.co_qualname == qualified and part.co_firstlineno == first_line:
                return part
            found = _find(part, qualified, first_line)
            if found is not None:
                return found
    return None
