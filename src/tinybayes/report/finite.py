"""Values for JSON, which has neither infinities nor NaN."""

import math
from typing import Any


def finite(value: Any) -> Any:
    """Replace the numbers that JSON does not have by None: the log loss of an impossible row is infinite."""
    if isinstance(value, dict):
        return {str(key): finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
