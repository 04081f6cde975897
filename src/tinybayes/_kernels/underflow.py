"""The processor's underflow flag: set by any operation whose result is too small for a double, until it is cleared."""

import ctypes
import platform

from numba import types

from tinybayes._kernels import jit

# FE_UNDERFLOW of <fenv.h>, which depends on the processor.
_FLAGS = {"x86_64": 16, "amd64": 16, "i686": 16, "aarch64": 8, "arm64": 8, "armv7l": 8}


def _known() -> bool:
    try:
        return all(hasattr(ctypes.CDLL(None), name) for name in ("feclearexcept", "fetestexcept"))
    except (OSError, TypeError):
        return False


FLAG = _FLAGS.get(platform.machine().lower(), 0) if _known() else 0
_clear = types.ExternalFunction("feclearexcept", types.int32(types.int32))
_test = types.ExternalFunction("fetestexcept", types.int32(types.int32))


@jit
def clear_underflow():
    """Clear the flag, if the processor is known."""
    if FLAG:
        _clear(FLAG)


@jit
def underflow():
    """Tell whether there was an underflow since `clear_underflow`; always true where the processor is not known."""
    return _test(FLAG) != 0 if FLAG else True
