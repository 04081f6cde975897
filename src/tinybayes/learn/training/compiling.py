"""Compiling for what is asked: quickly on a CPU, and on a GPU with sums in a fixed order where that is wanted.

On a CPU, LLVM's costliest passes are left out. They are those of level 3, the default; they take seconds for each new
shape of a model, and gain nothing: `benchmarks/training.py` has the time of the first epoch and that of the others.

On a GPU, gradients are scattered into tables in the order in which threads arrive, and the fastest of several kernels
is chosen by trying them. Both change the last bits from run to run. The options of `FIXED_ORDER` rule both out.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from tinybayes.learn.training._jax import jax

QUICK = {"xla_backend_optimization_level": 2}
FIXED_ORDER = {"xla_gpu_deterministic_ops": True, "xla_gpu_autotune_level": 0}


def platform() -> str:
    """Return where JAX runs now: ``cpu`` or another platform."""
    device = jax.config.values["jax_default_device"]
    return str(getattr(device, "platform", device) or jax.default_backend())


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile a function with the options of `jax.jit`; what it becomes takes `deterministic` besides its arguments."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        anywhere, on_cpu = jax.jit(function, **options), jax.jit(function, compiler_options=QUICK, **options)
        in_order = jax.jit(function, compiler_options=FIXED_ORDER, **options)

        @wraps(function)
        def call(*arguments: Any, deterministic: bool = False, **named: Any) -> Any:
            chosen = on_cpu if platform() == "cpu" else in_order if deterministic else anywhere
            return chosen(*arguments, **named)

        return call

    return decorate
