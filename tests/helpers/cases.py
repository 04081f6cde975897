"""Cases of parametrised tests that only `make test-all` or `make whole` run."""

import os

import pytest


def exhaustive(*cases):
    return [pytest.param(case, marks=pytest.mark.exhaustive) for case in cases]


def thinned(cases, kept):
    """Return the cases; those that are not kept run in the exhaustive suite only."""
    return [case if case in kept else pytest.param(case, marks=pytest.mark.exhaustive) for case in cases]


WHOLE = pytest.mark.skipif(not os.environ.get("TINYBAYES_WHOLE"), reason="runs with TINYBAYES_WHOLE=1")


def whole(*cases):
    """Return cases that only `make whole` runs: more of the same for releases, which would take CI too long."""
    return [pytest.param(case, marks=[pytest.mark.exhaustive, WHOLE]) for case in cases]
