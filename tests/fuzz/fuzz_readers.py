"""Every reader of the package: sound inputs, the words of its language, and what must hold for what it accepts."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

Mutant = Callable[[Random], bytes]
Run = Callable[[bytes, Path], None]


@dataclass
class Reader:
    """A reader under test.

    Parameters
    ----------
    name
        Of the reader.
    build
        "module:function", which returns a function that makes inputs and one that reads them from a directory; the
        latter raises `TinybayesError` for what is refused, and anything else for a defect.
    """

    name: str
    build: str
    _built: tuple[Mutant, Run] | None = field(default=None, repr=False)

    def missing(self) -> str:
        """Return why the reader cannot be run; nothing when it can."""
        try:
            self.prepare()
        except ImportError as problem:
            return f"{problem}"
        return ""

    def prepare(self) -> None:
        """Make the sound inputs; an `ImportError` says that something optional is not installed."""
        if self._built is None:
            module, name = self.build.split(":")
            self._built = getattr(importlib.import_module(module), name)()

    @property
    def mutant(self) -> Mutant:
        """The function that makes an input."""
        self.prepare()
        assert self._built is not None
        return self._built[0]

    @property
    def run(self) -> Run:
        """The function that reads it."""
        self.prepare()
        assert self._built is not None
        return self._built[1]


READERS = {
    reader.name: reader
    for reader in (
        Reader("csv", "fuzz_tables:csv"),
        Reader("arff", "fuzz_tables:arff"),
        Reader("parquet", "fuzz_tables:parquet"),
        Reader("npz", "fuzz_tables:npz"),
        Reader("bif", "fuzz_networks:bif"),
        Reader("xmlbif", "fuzz_networks:xmlbif"),
        Reader("uai", "fuzz_networks:uai"),
        Reader("uai-evidence", "fuzz_networks:evidence"),
        Reader("uai-marginals", "fuzz_networks:marginals"),
        Reader("ac", "fuzz_networks:ac"),
        Reader("clauses", "fuzz_networks:clauses"),
        Reader("names", "fuzz_networks:names"),
        Reader("tb-network", "fuzz_native:networks"),
        Reader("tb-circuit", "fuzz_native:circuits"),
        Reader("tb-log-linear", "fuzz_native:log_linear"),
        Reader("tb-net", "fuzz_native:nets"),
        Reader("tb-trees", "fuzz_native:trees"),
        Reader("tb-density", "fuzz_answers:densities"),
        Reader("tb-encodings", "fuzz_answers:encodings"),
        Reader("join-tree", "fuzz_answers:join_trees"),
        Reader("lightgbm", "fuzz_imports:lightgbm"),
        Reader("xgboost", "fuzz_imports:xgboost"),
        Reader("checkpoint", "fuzz_native:checkpoints"),
        Reader("query", "fuzz_words:queries"),
        Reader("options", "fuzz_words:options"),
        Reader("front", "fuzz_words:fronts"),
        Reader("progress", "fuzz_words:progress"),
        Reader("sweeps", "fuzz_words:sweeps"),
        Reader("store", "fuzz_words:stores"),
    )
}
