"""The processor's own note that a result was too small for a double: set by any operation until it is cleared."""

import ctypes
import platform

from numba import types

from tinybayes._kernels import jit

# FE_UNDERFLOW of <fenv.h>, which the processor says.
_FLAGS = {"x86_64": 16, "amd64": 16, "i686": 16, "aarch64": 8, "arm64": 8, "armv7l": 8}


def _known() -> bool:
    try:
        return all(hasattr(ctypes.CDLL(None), name) for name in ("feclearexcept", "fetestexcept"))
    except (OSError, TypeError):
        return False


FLAG = _FLAGS.get(platform.machine().lower(), 0) if _known() else 0

if FLAG:
    _clear = types.ExternalFunction("feclearexcept", types.int32(types.int32))
    _test = types.ExternalFunction("fetestexcept", types.int32(types.int32))

    @jit
    def clear_underflow():
        """Forget what was too small before."""
        _clear(FLAG)

    @jit
    def underflow():
        """Tell whether anything was too small since then."""
        return _test(FLAG) != 0

else:

    @jit
    def clear_underflow():
        """Do nothing: the processor is not known."""

    @jit
    def underflow():
        """Say so always, since it is not known."""
        return True
