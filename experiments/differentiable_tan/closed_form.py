"""Table 1, generative parameters: python -m experiments.differentiable_tan.closed_form.

Naive Bayes and Chow-Liu trees with maximum-likelihood tables, one added to every joint cell, as in the papers: test
errors in percent, means of the folds. Nothing is chosen.
"""

import time
from pathlib import Path

import numpy as np

from experiments.provenance import provenance
from experiments.records import DATA
from experiments.store import write_report
from tinybayes.data import named
from tinybayes.infer import evaluate
from tinybayes.learn import learn_classifier

RESULTS = Path(__file__).parent / "results" / "closed_form.json"


def main() -> None:
    began, results = time.monotonic(), []
    for data in DATA:
        splits = [named.load(data, fold=fold) for fold in range(named.n_folds(data))]
        for structure in ("naive", "chow-liu"):
            errors = [evaluate(learn_classifier(s.train, structure=structure), s.test).error for s in splits]
            results.append({"data": data, "structure": structure, "error": round(100 * float(np.mean(errors)), 4)})
            print(results[-1], flush=True)
    write_report(
        RESULTS, {"provenance": [provenance(time.monotonic() - began, packages=("numpy",))], "results": results}
    )


if __name__ == "__main__":
    main()
