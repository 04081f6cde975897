from numba.core.caching import CompileResultCacheImpl

from tinybayes._kernels import jit


def twice(x):
    return 2 * x


def test_kernels_run_where_nothing_can_be_cached(monkeypatch):
    monkeypatch.setattr(CompileResultCacheImpl, "_locator_classes", [])
    assert jit(twice)(3) == 6
