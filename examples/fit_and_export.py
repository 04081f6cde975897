"""Learn a classifier for the digits, store it in 8-bit integers, and write it as C that gives the same answers."""

import ctypes
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import tinybayes as tb

train, test = tb.datasets.load("digits")
net = tb.learn_classifier(train, structure="chow-liu")
small = tb.quantize(net, tb.Fixed(4, 4))  # 4 bits before and 4 bits after the binary point
for name, model in (("float", net), ("8 bits", small)):
    print(f"{name}: {100 * tb.evaluate(model, test).error:.2f} % error, {tb.model_cost(model)}")

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
for name, text in tb.export(small, "c", name="digits").items():
    (folder / name).write_text(text)
    print("wrote", name)

if shutil.which("cc"):  # the C program and Python must agree on every row
    library = folder / "digits.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, folder / "digits.c"], check=True)
    predict = ctypes.CDLL(str(library)).digits_predict
    rows = np.where(test.X < 0, 255, test.X).astype(np.uint8)
    labels = [predict(row.ctypes.data_as(ctypes.c_void_p)) for row in rows]
    assert labels == tb.predict_codes(small, test.X).tolist()
    print(f"C and Python agree on {len(labels)} rows")
