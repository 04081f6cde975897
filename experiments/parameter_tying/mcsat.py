"""MC-SAT with a constraint for each table or for each feature: python -m experiments.parameter_tying.mcsat.

Poon and Domingos give every feature a constraint of its own; our default gives one to each table. Both do as many sweeps
on the models of Figure 2 with known zeros, quantised, so that times do not matter. Distances are those to the exact
marginals of the sampled model.
"""

import os
import time
import tomllib
from pathlib import Path

import numpy as np

from experiments.parameter_tying.learning import forward, learned
from experiments.provenance import provenance
from experiments.store import Record, write_report
from tinybayes import marginals, tie
from tinybayes.deploy.files.uai import read_uai
from tinybayes.infer import hellinger
from tinybayes.model import LogLinear

HERE = Path(__file__).parent
SWEEPS, RUNS = 4000, 3


def main() -> None:
    plan, began = tomllib.loads((HERE / "figure2.toml").read_text()), time.monotonic()
    results: list[Record] = []
    for name, network in plan["networks"].items():
        true = read_uai(Path(os.environ["TINYBAYES_DATA"]) / "networks" / network["file"])
        counts = LogLinear.from_bayes_net(true).counts(forward(true, plan["train"], plan["seed"]))
        model = tie(learned(true, counts, "known"), network["levels"][1]).model
        exact = marginals(model, method="exact").probabilities
        for levels in ("factor", "feature"):
            distances = []
            for seed in range(RUNS):
                answer = marginals(model, method="mcsat", levels=levels, samples=SWEEPS, seed=seed)
                distances.append(round(hellinger(answer.probabilities, exact), 5))
            found: Record = {"network": name, "levels": network["levels"][1], "constraints": levels}
            results.append(found | {"hellinger": float(np.mean(distances)), "runs": distances, "sweeps": SWEEPS})
            print(results[-1], answer.notes, flush=True)
    made = [provenance(time.monotonic() - began)]
    write_report(HERE / "results" / "mcsat.json", {"provenance": made, "results": results})


if __name__ == "__main__":
    main()
