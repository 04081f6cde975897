"""Training by gradient with its defaults beside the closed form: python -m experiments.defaults.

Test errors on digits, letter, satimage (first fold) and usps; nothing was chosen on the test rows. `search` draws 20
random settings and takes the best on a tenth of the training rows.
"""

import platform
import sys
import time
from pathlib import Path

from experiments.provenance import provenance
from experiments.store import write_report
from tinybayes import datasets, evaluate, learn_classifier
from tinybayes.learn import HybridOptions

CASES = {
    "closed form": {"training": "ml"},
    "hybrid": {"training": "hybrid"},
    "search": {"training": "hybrid", "options": HybridOptions(n_configs=20)},
}


def main() -> None:
    began = time.perf_counter()
    results = []
    for name in ("digits", "letter", "satimage", "usps"):
        train, test = datasets.load(name)
        for structure in ("naive", "chow-liu", "subset"):
            for case, options in CASES.items():
                if (case == "closed form" and structure == "subset") or (case == "search" and structure != "naive"):
                    continue
                start = time.perf_counter()
                wrong = evaluate(learn_classifier(train, structure=structure, **options), test).error
                seconds = round(time.perf_counter() - start, 1)
                figures = {"data": name, "structure": structure, "case": case, "error": round(100 * wrong, 2)}
                results.append({**figures, "seconds": seconds})
                print(results[-1], flush=True)
    report = {"provenance": provenance(time.perf_counter() - began), "machine": platform.machine(), "results": results}
    write_report(Path(__file__).parent / "defaults.json", {"command": " ".join(sys.argv), **report})


if __name__ == "__main__":
    main()
