"""Compiling in less than half of the time: for a CPU, without LLVM's costliest passes.

These passes are those of level 3, the default. They take seconds for each new shape of a model, and gain nothing:
`benchmarks/training.py` has the time of the first epoch and that of the others.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from tinybayes.learn.training._jax import jax

QUICK = {"xla_backend_optimization_level": 2}


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile a function with the options of `jax.jit`; where it runs on a CPU, quickly."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        anywhere, on_cpu = jax.jit(function, **options), jax.jit(function, compiler_options=QUICK, **options)

        @wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            device = jax.config.values["jax_default_device"]
            platform = getattr(device, "platform", device) or jax.default_backend()
            return (on_cpu if platform == "cpu" else anywhere)(*arguments, **named)

        return call

    return decorate
