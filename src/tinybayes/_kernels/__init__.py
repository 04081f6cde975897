"""All Numba code: arrays in, arrays out, no type of the package.

Kernels are compiled on first use and cached on disk. They release the interpreter lock instead of using
Numba's own threads: blocks of rows or columns run on ordinary Python threads (`threads.py`), which survives
forking and nesting, compiles faster, and leaves no global state behind.

Numba optimises a function again in every caller that it is linked into, which made a hot loop two calls below the
kernel 15 % slower than the same loop one call below it. Hot loops are called by the kernel itself.
"""

from collections.abc import Callable
from typing import Any


def jit(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Compile without object mode, cached on disk where a folder can be written to, outside the interpreter lock."""
    import numba  # here, so that what needs no kernel does not load it

    compiled: Callable[..., Any]
    try:
        compiled = numba.njit(function, cache=True, nogil=True, **options)
    except RuntimeError:  # neither beside the file nor in the home directory, as in many containers
        compiled = numba.njit(function, nogil=True, **options)
    return compiled


def plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that allocates nothing, without counting references to its arrays.

    Numba counts a reference to every array of a tuple at every call, which costs more than a short function does.
    """
    return jit(function, _nrt=False)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a small function as `plain` does and write it into its callers: a tuple of arrays is then free to pass.

    A sweep of Gibbs sampling takes several times as long without this.
    """
    return jit(function, _nrt=False, inline="always")
