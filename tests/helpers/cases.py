"""Cases of parametrised tests that only `make test-all` runs."""

import pytest


def exhaustive(*cases):
    return [pytest.param(case, marks=pytest.mark.exhaustive) for case in cases]
