"""The C of generated functions as trees: a reader of the part of C99 that the makers of programs write."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from tinybayes.errors import error

TOKEN = re.compile(
    r"\s+|/\*.*?\*/|(?P<token>0[xX][0-9a-fA-F]+[uUlL]*|\d+\.?\d*(?:[eE][-+]?\d+)?[uUlLfF]*|\w+"
    r"|<<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)",
    re.DOTALL,
)
INTEGERS = {f"{kind}int{n}_t": f"{kind or 'i'}{n}" for kind in ("u", "") for n in (8, 16, 32, 64)}
TYPES = INTEGERS | {"unsigned": "u32", "int": "i32", "float": "f32", "size_t": "u32", "void": "void", "char": "u8"}
QUALIFIERS = {"const", "volatile", "static", "struct", "union"}
# Operators of two operands from the weakest to the strongest.
LEVELS = ("||", "&&", "|", "^", "&", "== !=", "< > <= >=", "<< >>", "+ -", "* / %")
ASSIGN = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}


class Node(NamedTuple):
    """A statement, a declaration or an expression: what it is, a word that belongs to it, and its parts."""

    kind: str
    text: str = ""
    parts: tuple["Node", ...] = ()


class Declared(NamedTuple):
    """A name with its type: the innermost type, the number of stars, and the sizes of the axes of an array."""

    name: str
    base: str
    stars: int
    axes: tuple[int, ...]
    fixed: bool = False  # whether a number is declared as constant


def parse_body(lines: Iterable[str]) -> Node:
    """Read the lines of a function."""
    reader = _Reader("\n".join(lines))
    statements = []
    while reader.next:
        statements.append(reader.statement())
    return Node("block", "", tuple(statements))


def parse_parameter(text: str) -> Declared:
    """Read a parameter; an array is a pointer."""
    reader = _Reader(text)
    declared = reader.declarator(reader.base())
    return declared._replace(stars=declared.stars + len(declared.axes), axes=())


def declared_of(node: Node) -> Declared:
    """Return the name and type of one declaration."""
    name, base, stars, fixed, *axes = node.text.split()
    return Declared(name, base, int(stars), tuple(map(int, axes)), fixed == "True")


def walk(node: Node) -> Iterable[Node]:
    """Yield a node and all nodes below it."""
    yield node
    for part in node.parts:
        yield from walk(part)


class _Reader:
    def __init__(self, text: str) -> None:
        self.tokens = [m["token"] for m in TOKEN.finditer(text) if m["token"]]
        self.at = 0

    @property
    def next(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, wanted: str = "") -> str:
        token = self.next
        if not token or (wanted and token != wanted):
            line = " ".join(self.tokens[max(0, self.at - 8) : self.at + 3])
            raise error(wanted or "more code", repr(token), where=f"generated C: {line}")
        self.at += 1
        return token

    def skip(self, token: str) -> bool:
        if self.next == token:
            self.at += 1
            return True
        return False

    @property
    def begins_type(self) -> bool:
        return self.next in TYPES or self.next in QUALIFIERS

    # Declarations

    def base(self) -> str:
        """Read the innermost type; the only union is that of a float and its bits."""
        base = ""
        while self.begins_type:
            word = self.take()
            if word in TYPES:
                base = TYPES[word]
            elif word in ("struct", "union"):
                base = word if self.next == "{" else f"struct:{self.take()}"
                if self.skip("{"):
                    while self.take() != "}":
                        pass
        return base

    def declarator(self, base: str) -> Declared:
        stars, axes = 0, []
        while self.next in ("*", "const", "volatile"):
            stars += self.take() == "*"
        name = self.take() if re.fullmatch(r"[A-Za-z_]\w*", self.next) else "?"
        while self.skip("["):
            axes.append(int(self.take().rstrip("uU")) if self.next != "]" else 0)
            self.take("]")
        return Declared(name, base, stars, tuple(axes))

    def declaration(self) -> Node:
        fixed = self.next == "const"
        base, names = self.base(), []
        while True:
            made = self.declarator(base)
            start = (self.assignment(),) if self.skip("=") else ()
            text = " ".join(map(str, (made.name, made.base, made.stars, fixed and not made.stars, *made.axes)))
            names.append(Node("name", text, start))
            if not self.skip(","):
                break
        self.take(";")
        return Node("declare", "", tuple(names))

    # Statements

    def statement(self) -> Node:
        token = self.next
        if self.next == "{":
            return self.block()
        if self.begins_type:
            return self.declaration()
        read = {"if": self._if, "while": self._while, "for": self._for, "do": self._do, "return": self._return}
        if token in read:
            return read[self.take()]()
        if self.skip(";"):
            return Node("empty")
        if token in ("break", "continue"):
            self.take()
            self.take(";")
            return Node(token)
        expression = self.expression()
        self.take(";")
        return Node("expression", "", (expression,))

    def block(self) -> Node:
        self.take("{")
        statements = []
        while not self.skip("}"):
            statements.append(self.statement())
        return Node("block", "", tuple(statements))

    def condition(self) -> Node:
        self.take("(")
        expression = self.expression()
        self.take(")")
        return expression

    def _if(self) -> Node:
        test, then = self.condition(), self.statement()
        return Node("if", "", (test, then, self.statement()) if self.skip("else") else (test, then))

    def _while(self) -> Node:
        return Node("while", "", (self.condition(), self.statement()))

    def _do(self) -> Node:
        body = self.statement()
        self.take("while")
        test = self.condition()
        self.take(";")
        return Node("do", "", (test, body))

    def _for(self) -> Node:
        self.take("(")
        empty = Node("empty")
        start = self.statement()
        test = empty if self.next == ";" else self.expression()
        self.take(";")
        step = empty if self.next == ")" else self.expression()
        self.take(")")
        return Node("for", "", (start, test, step, self.statement()))

    def _return(self) -> Node:
        value = () if self.next == ";" else (self.expression(),)
        self.take(";")
        return Node("return", "", value)

    # Expressions

    def expression(self) -> Node:
        value = self.assignment()
        while self.skip(","):
            value = Node("comma", "", (value, self.assignment()))
        return value

    def assignment(self) -> Node:
        target = self.conditional()
        if self.next in ASSIGN:
            operator = self.take()
            return Node("assign", operator[:-1], (target, self.assignment()))
        return target

    def conditional(self) -> Node:
        test = self.binary(0)
        if not self.skip("?"):
            return test
        then = self.assignment()
        self.take(":")
        return Node("choose", "", (test, then, self.assignment()))

    def binary(self, level: int) -> Node:
        if level == len(LEVELS):
            return self.unary()
        value = self.binary(level + 1)
        while self.next in LEVELS[level].split():
            value = Node("binary", self.take(), (value, self.binary(level + 1)))
        return value

    def unary(self) -> Node:
        if self.next in ("-", "+", "!", "~", "*", "&"):
            return Node("unary", self.take(), (self.unary(),))
        if self.next in ("++", "--"):
            return Node("before", self.take(), (self.unary(),))
        if self.next == "(" and (self.tokens[self.at + 1] in TYPES or self.tokens[self.at + 1] in QUALIFIERS):
            self.take()
            made = self.declarator(self.base())
            self.take(")")
            return Node("cast", f"{made.base} {made.stars}", (self.unary(),))
        return self.postfix()

    def postfix(self) -> Node:
        value = self.primary()
        while True:
            if self.skip("["):
                value = Node("index", "", (value, self.expression()))
                self.take("]")
            elif self.next in (".", "->"):
                through = self.take()
                value = Node("unary", "*", (value,)) if through == "->" else value
                value = Node("member", self.take(), (value,))
            elif self.next in ("++", "--"):
                value = Node("after", self.take(), (value,))
            else:
                return value

    def primary(self) -> Node:
        if self.skip("("):
            value = self.expression()
            self.take(")")
            return value
        token = self.take()
        if token[0].isdigit():
            return Node("number", token)
        if not self.skip("("):
            return Node("variable", token)
        arguments = []
        while not self.skip(")"):
            arguments.append(self.assignment())
            self.skip(",")
        return Node("call", token, tuple(arguments))
