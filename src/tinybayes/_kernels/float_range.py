"""The processor's flags of results too small or too large for a double: set by any operation until they are cleared."""

import ctypes
import platform

from numba import types

from tinybayes._kernels import jit

# FE_UNDERFLOW | FE_OVERFLOW of <fenv.h>, which depend on the processor.
_FLAGS = {"x86_64": 24, "amd64": 24, "i686": 24, "aarch64": 12, "arm64": 12, "armv7l": 12}


def _known() -> bool:
    try:
        return all(hasattr(ctypes.CDLL(None), name) for name in ("feclearexcept", "fetestexcept"))
    except (OSError, TypeError):
        return False


FLAG = _FLAGS.get(platform.machine().lower(), 0) if _known() else 0
_clear = types.ExternalFunction("feclearexcept", types.int32(types.int32))
_test = types.ExternalFunction("fetestexcept", types.int32(types.int32))


@jit
def watch_range():
    """Clear the flags, if the processor is known."""
    if FLAG:
        _clear(FLAG)


@jit
def left_range():
    """Tell whether a result since `watch_range` was too small or too large; always true on an unknown processor."""
    return _test(FLAG) != 0 if FLAG else True
