"""Arguments and options of commands: those that several share, and those that come from the dataclasses of learners.

Names, help, defaults and bounds of the latter stand in the dataclasses. These are imported when their command is
called, so that the other commands start quickly.
"""

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import wraps
from importlib import import_module
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from tinybayes.cli._console import be_quiet
from tinybayes.errors import error
from tinybayes.files import is_directory
from tinybayes.options import Option, check_seed, options_of

Function = TypeVar("Function", bound=Callable[..., None])
PAIR = tuple[int, int]


def chosen_model(path: Path) -> Path:
    """Return the file of the chosen model when the path is the directory of a search, else the path."""
    return named_model(path, None)


def named_model(path: Path, wanted: str | None) -> Path:
    """Return the file of a model of a search by its id, without one of the chosen model; other paths as they are."""
    if not is_directory(path):
        if wanted is not None:
            raise error("the directory of a search", str(path), where="--model", remedy="leave it out")
        return path
    from tinybayes.report.front import model_path, read_front

    front = read_front(path)
    files = {model["id"]: model["file"] for model in front["models"] if model["file"] is not None}
    if wanted is not None and wanted not in files:
        shown = ", ".join(list(files)[:12]) + (", ..." if len(files) > 12 else "")
        raise error(f"the id of a model that was kept: {shown}", repr(wanted[:40]), where="--model")
    file = files.get(wanted or front["chosen"] or "")
    if file is None:
        remedy = "name one of its models, or search longer"
        raise error("a search that has chosen a model", "one that has not", where=str(path), remedy=remedy)
    model_path(path, file)  # refuses a file outside of the directory
    return path / file


def _seed(value: int) -> int:
    check_seed(value, "--seed")
    return value


_TABLES = "CSV, TSV, Parquet, ARFF, npz or .data; text also .gz"
MODELS = "A model: .tb, .bif, .xmlbif, .uai or .ac; or the directory of a search: the one it chose"
TableFile = Annotated[Path, typer.Argument(metavar="TABLE", help=_TABLES)]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help=MODELS, callback=chosen_model)]
ModelOutput = Annotated[Path, typer.Option("-o", "--output", help="The model file to write.")]
Target = Annotated[str, typer.Option(metavar="COLUMN", help="The column to predict.")]
Drop = Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="A column to leave out; may be repeated.")]
Weight = Annotated[str | None, typer.Option(metavar="COLUMN", help="A column of row weights.")]
Seed = Annotated[int, typer.Option(help="For everything drawn at random.", callback=_seed)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for machines instead of tables.")]
Core = Annotated[str, typer.Option(help="The core that the program is priced for: cortex-m0+, -m3, -m4 or -m7.")]
Clock = Annotated[str | None, typer.Option(metavar="FREQUENCY", help="Of the core: 48MHz; its usual one by default.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print answers and errors only.")]


class _Hyper(NamedTuple):
    """One hyper-parameter as an option."""

    known: Option
    types: frozenset[Any]  # of its values, None left out
    default: Any

    def parameter(self, name: str, panel: str | None) -> inspect.Parameter:
        """Return the parameter that Typer sees."""
        metavar = self.known.metavar or ("|".join(map(str, self.known.choices)) if self.known.choices else None)
        if PAIR in self.types and metavar is None:
            metavar = "BITS" if int in self.types else "ROWSxCOLUMNS"
        kind: Any = next(iter(self.types)) if self.types <= {int, float, str, bool} else str
        names = [dashed(name)] if kind is bool else []  # no --no-...
        shown = typer.Option(*names, help=self.known.help, metavar=metavar, rich_help_panel=panel)
        default = self.default if self.default is None or isinstance(self.default, kind) else str(self.default)
        annotation = Annotated[kind | None, shown]
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)

    def value(self, name: str, value: Any) -> Any:
        """Convert the value that the user gave for the dataclass, and check it."""
        if isinstance(value, str) and PAIR in self.types:
            value = bits_of(value, name) if int in self.types else image_shape_of(value, name)
        elif isinstance(value, str) and float in self.types:
            value = _number_or_word(value, self.types, name)
        elif value == "none" and str not in self.types:
            value = None
        self.known.check(name, value)
        return value


class _Learner(NamedTuple):
    """A dataclass that a command takes."""

    argument: str
    source: str
    panel: str | None
    only: Sequence[str]
    without: Sequence[str]
    defaults: dict[str, Any]

    def load(self) -> tuple[Any, dict[str, _Hyper]]:
        """Return the dataclass, and its hyper-parameters by name."""
        module, _, name = self.source.rpartition(".")
        learner = getattr(import_module(module), name)
        defaults = {field.name: field.default for field in fields(learner)} | self.defaults
        hints = get_type_hints(learner)
        return learner, {
            name: _Hyper(known, frozenset(get_args(hints[name]) or [hints[name]]) - {NoneType}, defaults[name])
            for name, known in options_of(learner).items()
            if name not in self.without and (not self.only or name in self.only)
        }


def options_from(
    source: str,
    argument: str,
    *,
    panel: str | None = None,
    only: Sequence[str] = (),
    without: Sequence[str] = (),
    **defaults: Any,
) -> Callable[[Function], Function]:
    """Give a command an option for each hyper-parameter of the dataclass `source`, a ``module.Name``.

    The command receives an instance as `argument`. `only` or `without` restrict the hyper-parameters, `defaults` are
    the command's own, and `panel` is the panel of the help that shows the options.
    """

    def decorate(command: Function) -> Function:
        learner = _Learner(argument, source, panel, only, without, defaults)
        command.learners = (learner, *getattr(command, "learners", ()))  # type: ignore[attr-defined]
        return command

    return decorate


def spelled_out(command: Callable[..., None], *, stub: bool = False) -> Callable[..., None]:
    """Return a command with --quiet that takes the hyper-parameters of its dataclasses one by one; a stub takes none.

    Before the name of the command, --quiet does the same.
    """
    learners: tuple[_Learner, ...] = getattr(command, "learners", ())
    loaded = [] if stub else [(learner, *learner.load()) for learner in learners]
    own = inspect.signature(command)
    parameters = {n: p for n, p in own.parameters.items() if n not in {learner.argument for learner in learners}}
    for learner, _, hypers in loaded:
        parameters |= {name: hyper.parameter(name, learner.panel) for name, hyper in hypers.items()}
    quietly = inspect.Parameter("quiet", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Quiet)
    parameters["quiet"] = quietly

    @wraps(command)
    def run(*, quiet: bool, **values: Any) -> None:
        if quiet:
            be_quiet(True)
        for learner, kind, hypers in loaded:
            chosen = {name: hyper.value(dashed(name), values.pop(name)) for name, hyper in hypers.items()}
            values[learner.argument] = kind(**chosen)
        command(**values)

    by_name = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters.values()]
    run.__signature__ = own.replace(parameters=by_name)  # type: ignore[attr-defined]
    run.__annotations__ = {name: p.annotation for name, p in parameters.items()}
    return run


class Command(TyperCommand):
    """A command whose help names no type of its flags."""

    def get_params(self, ctx: Any) -> Any:
        """Return all parameters, that of --help included."""
        return _flags_without_type(super().get_params(ctx))


def _flags_without_type(parameters: Any) -> Any:
    for parameter in parameters:
        if getattr(parameter, "is_flag", False) and parameter.metavar is None:
            parameter.metavar = ""
    return parameters


class Commands(TyperGroup):
    """Commands whose options from dataclasses are made when one is called, not when all are listed."""

    late: dict[str, Callable[[], Any]] = {}  # noqa: RUF012 - filled where the commands are registered

    def get_params(self, ctx: Any) -> Any:
        """Return all parameters, that of --help included."""
        return _flags_without_type(super().get_params(ctx))

    def resolve_command(self, ctx: Any, args: Any) -> Any:
        """Return the command with all its options."""
        name, command, rest = super().resolve_command(ctx, args)
        make = self.late.get(name or "")
        return name, command if make is None else make(), rest


def given(context: typer.Context, *names: str) -> list[str]:
    """Return which of some options the user gave, as they are written on the command line."""
    sources = {name: context.get_parameter_source(name) for name in names}
    return [dashed(name) for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]


def dashed(name: str) -> str:
    """Return the option of a hyper-parameter."""
    return f"--{name.replace('_', '-')}"


def _number_or_word(text: str, types: frozenset[Any], where: str) -> float | str:
    """Return a number, or one of the words that the type of a hyper-parameter names."""
    words = [word for kind in types for word in get_args(kind)]
    if text in words:
        return text
    try:
        return float(text)
    except ValueError:
        raise error(f"a number, or {', '.join(words)}", repr(text), where=where) from None


def bits_of(text: str, where: str = "--bits") -> int | tuple[int, int]:
    """Return a number of bits, or those before and after the binary point, from a text such as 4 or 3,1."""
    match = re.fullmatch(r"([0-9]{1,4})(?:,(-?[0-9]{1,4}))?", text)
    if match is None:
        expected = "a number of bits such as 4, or those before and after the binary point such as 3,1"
        raise error(expected, repr(text), where=where)
    return int(match[1]) if match[2] is None else (int(match[1]), int(match[2]))


def image_shape_of(text: str | None, where: str = "--image-shape") -> tuple[int, int] | None:
    """Return rows and columns of an image from a text such as 28x28."""
    if text is None:
        return None
    match = re.fullmatch(r"([1-9][0-9]{0,5})x([1-9][0-9]{0,5})", text)
    if match is None:
        raise error("rows and columns such as 28x28", repr(text), where=where)
    return int(match[1]), int(match[2])
