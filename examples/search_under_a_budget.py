"""Search all model families for the most accurate classifier of handwritten digits in 4 kB of flash."""

import sys
import tempfile
from pathlib import Path

from sklearn.datasets import load_digits

import tinybayes as tb

table = load_digits(as_frame=True).frame
train, test = table.iloc[::2], table.iloc[1::2]

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()) / "search"
result = tb.explore(train, "target", output=folder, test=test, budget="4kB", seconds=10, seed=0)

print("the front, from the smallest model to the most accurate one:")
for point in result.front:
    print(f"  {point['flash']:>7,} B  {100 * point['validation_error']:5.2f} % validation error  {point['family']}")
print("chosen:", result.chosen["label"])
