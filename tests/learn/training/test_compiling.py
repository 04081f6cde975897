"""Compiling quickly changes nothing but the time it takes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tinybayes.learn.training.compiling import QUICK, compiled


def powers(x, *, count):
    return sum(jnp.sin(x) ** k for k in range(count))


def test_a_function_compiled_quickly_gives_what_it_gives():
    quick = compiled(static_argnames="count")(powers)
    assert quick.__doc__ == powers.__doc__
    x = jnp.linspace(0.0, 1.0, 50)
    np.testing.assert_allclose(quick(x, count=3), powers(x, count=3), rtol=1e-6)
    mapped = jax.vmap(lambda row: quick(row, count=2))(jnp.stack([x, 2 * x]))
    np.testing.assert_allclose(mapped[1], powers(2 * x, count=2), rtol=1e-6)


@pytest.mark.parametrize("device", [None, "cpu", jax.devices("cpu")[0]])
def test_only_a_cpu_is_compiled_for_quickly(monkeypatch, device):
    made = []

    def jit(function, compiler_options=None, **options):
        return lambda *arguments: made.append(compiler_options)

    monkeypatch.setattr(jax, "jit", jit)
    call = compiled()(powers)
    with jax.default_device(device):
        call(1.0)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    with jax.default_device(None):
        call(1.0)
    assert made[1] is None
    assert made[0] == (QUICK if device is not None or jax.devices()[0].platform == "cpu" else None)
