"""XMLBIF 0.3, the XML form of the Interchange Format for Bayesian Networks.

A ``TABLE`` runs through the ``GIVEN`` variables in their order, the first slowest, and through the states of
the ``FOR`` variable fastest. White space around names is dropped unless the element says
``xml:space="preserve"``, which is how names that need it are written. The sum of a row may differ from
one by 1e-3, since files round; the numbers are kept as they are. ``PROPERTY`` elements keep what the format has
no field for, as in BIF: ``target = NAME`` in the network, ``states = KIND`` and ``edges = CUT CUT ...`` in a
variable; all other properties are skipped.

Document type declarations have no effect: element and attribute declarations are skipped, and entities are
refused, since a few lines of them can expand to gigabytes.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from xml.parsers import expat
from xml.sax.saxutils import escape

import numpy as np

from tinybayes.deploy.files import network_text as common
from tinybayes.errors import FileError, TinybayesError, error
from tinybayes.model import BayesNet, Variable

_DEPTH = 32
_LEAVES = {"NAME", "OUTCOME", "PROPERTY", "FOR", "GIVEN", "TABLE"}
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def read_xmlbif(path: str | os.PathLike[str]) -> BayesNet:
    """Read a network from an XMLBIF file; it has a class only if the file names one."""
    document = _Document(f"{path}", common.read_bytes(path))
    network = document.network()
    variables: dict[str, Variable] = {}
    for element in network.all("VARIABLE"):
        variable = _variable(document, element)
        if variable.name in variables:
            raise document.error(element.line, "variables of distinct names", f"{variable.name!r} again")
        variables[variable.name] = variable
    builder = common.NetworkBuilder(document.error, list(variables), [v.cardinality for v in variables.values()])
    for element in network.all("DEFINITION"):
        _definition(document, builder, element)
    target = network.properties().get("target")
    target = None if target is None else common.unquote(target)
    return builder.build(variables.values(), document.last, target, network.line)


def write_xmlbif(net: BayesNet, path: str | os.PathLike[str], *, normalize: bool = False) -> None:
    """Write a network, as `write_bif` does, to an XMLBIF file."""
    tables = common.network_decimals(net, normalize)
    for node in net.nodes:
        for text in (node.name, *map(common.state_text, node.states)):
            if _ILLEGAL.search(text):
                where, remedy = f"variable {node.name!r}", "rename it, or write BIF"
                raise error("names of characters that XML has", repr(text), where=where, remedy=remedy)
    common.write_text(path, _format(net, tables))


@dataclass
class _Element:
    """An element with its children; its text only where the format has text."""

    tag: str
    line: int
    attributes: dict[str, str] = field(default_factory=dict)
    pieces: list[str] = field(default_factory=list)
    children: list["_Element"] = field(default_factory=list)

    @property
    def text(self) -> str:
        text = "".join(self.pieces)
        return text if self.attributes.get("xml:space") == "preserve" else text.strip()

    def all(self, tag: str) -> list["_Element"]:
        return [child for child in self.children if child.tag == tag]

    def properties(self) -> dict[str, str]:
        return dict(common.split_property(child.text) for child in self.all("PROPERTY"))


class _Document:
    """The elements of a file with their lines."""

    def __init__(self, path: str, raw: bytes) -> None:
        self.path = path
        self.root = _Element("", 1)
        self.last = 1
        self._open = [self.root]
        self._parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.specified_attributes = True  # not the defaults of a document type declaration
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._data
        parser.EntityDeclHandler = self._refuse_entity
        parser.SkippedEntityHandler = self._refuse_entity
        try:
            parser.Parse(raw, True)
        except expat.ExpatError as problem:
            text = expat.errors.messages.get(problem.code, f"{problem}")
            raise self.error(problem.lineno, "well-formed XML", text) from problem
        except TinybayesError:
            raise
        except (LookupError, ValueError) as problem:
            raise self.error(1, "an encoding that is known", problem, "convert it to UTF-8") from problem

    def where(self, line: int) -> str:
        return f"{self.path}:{line}"

    def error(self, line: int, expected: str, got: object, remedy: str = "") -> TinybayesError:
        return error(expected, got, where=self.where(line), remedy=remedy, kind=FileError)

    def network(self) -> _Element:
        """Return the one network of the file."""
        (top,) = self.root.children  # XML has one
        if top.tag != "BIF":
            raise self.error(top.line, "the element BIF of an XMLBIF file", common.shorten(top.tag))
        return self.only(top, "NETWORK")

    def only(self, element: _Element, tag: str) -> _Element:
        """Return the one child with this tag."""
        children = element.all(tag)
        if len(children) != 1:
            got = f"{len(children)} of them" if children else "none"
            raise self.error(element.line, f"one element {tag} in {element.tag}", got)
        return children[0]

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        line = self._parser.CurrentLineNumber
        if len(self._open) > _DEPTH:
            raise self.error(line, f"elements at most {_DEPTH} deep", "more")
        element = _Element(tag.upper(), line, attributes)
        self._open[-1].children.append(element)
        self._open.append(element)

    def _end(self, tag: str) -> None:
        self._open.pop()
        self.last = self._parser.CurrentLineNumber

    def _data(self, text: str) -> None:
        if self._open[-1].tag in _LEAVES:
            self._open[-1].pieces.append(text)

    def _refuse_entity(self, name: str, *_: object) -> None:
        line, got = self._parser.CurrentLineNumber, f"the entity {common.shorten(name)}"
        raise self.error(line, "no entities of its own", got, "write out what it means")


def _variable(document: _Document, element: _Element) -> Variable:
    kind = element.attributes.get("TYPE", "nature")
    name = document.only(element, "NAME").text
    if kind != "nature":
        got = f"{name!r} of type {common.shorten(kind)}"
        raise document.error(element.line, "chance variables, TYPE='nature'", got, "remove the others")
    texts = [outcome.text for outcome in element.all("OUTCOME")]
    return common.make_variable(name, texts, element.properties(), document.where(element.line))


def _definition(document: _Document, builder: common.NetworkBuilder, element: _Element) -> None:
    family = (document.only(element, "FOR"), *element.all("GIVEN"))
    child, *parents = (builder.node(variable.text, variable.line) for variable in family)
    rows, states = builder.shape(child, parents, element.line)
    table = document.only(element, "TABLE")
    words = common.split_words(table.text, rows * states, partial(document.error, table.line))
    values = common.parse_numbers(words, lambda _: document.where(table.line))
    builder.add(child, parents, values.reshape(rows, states), element.line, lambda _: table.line)


def _leaf(tag: str, text: str) -> str:
    space = "" if text == text.strip() else ' xml:space="preserve"'
    return f"<{tag}{space}>{escape(text, {chr(13): '&#13;'})}</{tag}>\n"


def _format(net: BayesNet, tables: Sequence[np.ndarray]) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<BIF VERSION="0.3">\n<NETWORK>\n<NAME>unknown</NAME>\n'
    if net.target is not None:
        yield _leaf("PROPERTY", f"target = {common.quote(net.target.name)}")
    for node in net.nodes:
        yield '<VARIABLE TYPE="nature">\n' + _leaf("NAME", node.name)
        yield from (_leaf("OUTCOME", common.state_text(state)) for state in node.states)
        yield from (_leaf("PROPERTY", text) for text in common.variable_properties(node))
        yield "</VARIABLE>\n"
    for node, cpd, table in zip(net.nodes, net.cpds, tables, strict=True):
        yield "<DEFINITION>\n" + _leaf("FOR", node.name)
        yield from (_leaf("GIVEN", net.nodes[parent].name) for parent in cpd.parents)
        yield "<TABLE>\n"
        yield from (f"{' '.join(row)}\n" for row in table)
        yield "</TABLE>\n</DEFINITION>\n"
    yield "</NETWORK>\n</BIF>\n"
