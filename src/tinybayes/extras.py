"""Packages that not everyone needs: which extra of tinybayes brings them, and the error where one is missing."""

from importlib.util import find_spec

from tinybayes.errors import TinybayesError, error

EXTRAS = {  # package: the extra that brings it, and its use
    "jax": ("train", "JAX for training by gradient"),
    "optuna": ("search", "Optuna for searches"),
    "pysat": ("sat", "python-sat for sampling without dead ends"),
    "pyarrow": ("arrow", "PyArrow for Parquet, Arrow tables and text packed with Zstandard"),
    "scipy": ("sklearn", "SciPy for this method"),
    "sklearn": ("sklearn", "scikit-learn for its interface, its data sets and its methods"),
}


class MissingPackageError(TinybayesError):
    """A package that this task needs, and that is not installed; the message says how to install it."""


def missing(package: str, extra: str | None = None) -> MissingPackageError:
    """Build the error that says what to install: the extra that brings a package, or one that brings more."""
    brings, use = EXTRAS[package]
    remedy = f"pip install 'tinybayes[{extra or brings}]'"
    problem = error(use, "no such package", remedy=remedy, kind=MissingPackageError)
    assert isinstance(problem, MissingPackageError)
    return problem


def installed(package: str) -> bool:
    """Return whether a package can be imported, without importing it."""
    return find_spec(package) is not None


def require(*packages: str, extra: str | None = None) -> None:
    """Raise an error that says what to install unless all packages are there; `extra` brings all of them."""
    for package in packages:
        if not installed(package):
            raise missing(package, extra)
