"""Compiled code is kept on disk: a second process compiles nothing."""

import json
import os
import subprocess
import sys

TRAINING = """
import json, jax
seen = {"hits": 0, "misses": 0}

def count(event, **_):
    for name in seen:
        seen[name] += event == f"/jax/compilation_cache/cache_{name}"

jax.monitoring.register_event_listener(count)
import numpy as np
from tinybayes import BayesNetClassifier, QuantizedNetClassifier

X = np.random.default_rng(0).integers(0, 4, (120, 3))
y = X.sum(axis=1) % 2
BayesNetClassifier("naive", training="hybrid", epochs=2, random_state=0, input_noise=0.1, gamma=1.0).fit(X, y)
QuantizedNetClassifier(hidden=(4,), epochs=2, random_state=0, input_noise=0.1).fit(X, y)
print(json.dumps(seen))
"""


def test_a_second_process_compiles_nothing(tmp_path):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")} | {"TINYBAYES_CACHE": str(tmp_path)}

    def train():
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", TRAINING], env=environment, capture_output=True)
        assert done.returncode == 0, done.stderr.decode()[-2000:]
        return json.loads(done.stdout.splitlines()[-1])

    first, second = train(), train()
    assert first["misses"] > 5
    assert second["misses"] == 0
    assert second["hits"] >= first["misses"]
