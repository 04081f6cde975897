"""Flash and instructions of a few small programs on an emulated Cortex-M0+: python benchmarks/program_sizes.py."""

import dataclasses
import json
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "helpers"))

from harness import provenance  # noqa: E402

from networks import classifier  # noqa: E402
from neural_nets import neural_net  # noqa: E402
from tinybayes.cost import model_cost  # noqa: E402
from tinybayes.deploy.measure import measure  # noqa: E402
from tinybayes.deploy.programs.c import to_c  # noqa: E402
from tinybayes.deploy.programs.encoding import make_features  # noqa: E402
from tinybayes.deploy.programs.plan import rows_with_every_state  # noqa: E402
from tinybayes.model import Cuts, Fixed, Grid, Variable  # noqa: E402


def programs():
    """Yield a name, a model and the type of its raw values."""
    naive = classifier("naive", Fixed(3, 1), states=[4] * 4, classes=3)
    yield "naive Bayes, 4 integers, 3 classes", naive, [Cuts([3, 10, 25], integer=True)] * 4, "int"
    yield "naive Bayes, 4 floats, 3 classes", naive, [Cuts([0.5, 10.25 + i, 25.5]) for i in range(4)], "float"
    net = neural_net((32,), bits=6, states=[16] * 16, classes=10)
    yield "net of 32 units, 16 integers", net, [Grid(0, 1, 16, integer=True)] * 16, "int"
    yield "net of 32 units, 16 floats", net, [Grid(0, 0.25, 16)] * 16, "float"
    tree = classifier("tree", Fixed(3, 1), states=[8] * 16, classes=10)
    yield "TAN, 16 integers", tree, [Cuts(np.arange(1, 8) * 3 + i, integer=True) for i in range(16)], "int"
    yield "TAN, 16 floats", tree, [Cuts(np.arange(1, 8) * 0.5 + i) for i in range(16)], "float"


def main() -> None:
    results = []
    for name, model, encodings, raw in programs():
        variables = map(Variable.from_encoding, (v.name for v in model.variables), encodings)
        model = dataclasses.replace(model, variables=tuple(variables))
        codes = rows_with_every_state(tuple(v.cardinality for v in model.variables), 64)
        rows = make_features(model.variables, raw).values(codes)
        for gaps in (False, True):
            texts = to_c(model, name="net", raw=raw, gaps=gaps)
            (all_of_it,) = measure(texts, "net", rows, raw=True, boards=["m0+"])
            (coded,) = measure(texts, "net", codes, boards=["m0+"])
            encoder = (all_of_it.instructions - coded.instructions) / len(encodings)
            results.append(
                {"program": name, "gaps": gaps, "parameter_bytes": model_cost(model).bytes, "flash": all_of_it.flash}
                | {"instructions": round(all_of_it.instructions), "encoder_instructions_a_feature": round(encoder)}
            )
            print(results[-1], flush=True)
    path = ROOT / "benchmarks" / "results" / "program_sizes.json"
    path.write_text(json.dumps({**provenance(["numpy"]), "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
