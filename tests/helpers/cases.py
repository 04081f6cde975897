"""Cases of parametrised tests that only `make test-all` runs."""

import pytest


def exhaustive(*cases):
    return [pytest.param(case, marks=pytest.mark.exhaustive) for case in cases]


def thinned(cases, kept):
    """Return the cases; those that are not kept run in the exhaustive suite only."""
    return [case if case in kept else pytest.param(case, marks=pytest.mark.exhaustive) for case in cases]
