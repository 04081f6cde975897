"""Training by gradient with its defaults beside the closed form: python -m experiments.defaults [--data vowel letter].

Test errors on digits, letter, satimage (first fold), usps and, under ``TINYBAYES_DATA/tables``, twelve tables. No
setting of a model was chosen on the test rows. `first_rule` in the results is a rule that was measured before, and
replaced after its test errors had been seen. `plain` is training with the former defaults: MDLP, no input noise, a
margin of 10.
"""

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path

import pandas as pd

from experiments.provenance import provenance
from experiments.store import write_report
from tinybayes import BayesNetClassifier, datasets, evaluate, learn_classifier
from tinybayes.learn import HybridOptions

CODED = ("digits", "letter", "satimage", "usps")
TABLES = ("chess", "contraceptive", "crx", "german", "ionosphere", "marketing", "movement_libras", "mushroom")
TABLES += ("phoneme", "ring", "splice", "vowel")
PLAIN = {"input_noise": 0.0, "gamma": 10.0}
CASES = {"closed form": ("ml", {}), "plain": ("hybrid", PLAIN), "hybrid": ("hybrid", {})}
FILE = Path(__file__).parent / "defaults.json"


def wrong(name: str, structure: str, training: str, options: dict[str, float]) -> float:
    """Return the test error."""
    if name in CODED:
        train, test = datasets.load(name)
        given = HybridOptions(**options) if training == "hybrid" else None
        return evaluate(learn_classifier(train, structure=structure, training=training, options=given), test).error
    folder = Path(os.environ["TINYBAYES_DATA"]) / "tables"
    rows, test = (pd.read_csv(folder / f"{name}.{part}.csv.gz") for part in ("train", "test"))
    cut = {"discretizer": "mdlp"} if options else {}
    net = BayesNetClassifier(structure, training=training, random_state=0, **cut, **options)
    net.fit(rows.drop(columns="label"), rows["label"])
    return 1.0 - float(net.score(test.drop(columns="label"), test["label"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tables = TABLES if os.environ.get("TINYBAYES_DATA") else ()
    parser.add_argument("--data", nargs="+", choices=(*CODED, *TABLES), default=(*CODED, *tables))
    names = parser.parse_args().data
    began = time.perf_counter()
    before = json.loads(FILE.read_text()) if FILE.exists() else {"results": []}
    results = [result for result in before["results"] if result["data"] not in names]
    for name in names:
        for structure in ("naive", "chow-liu", *(("subset",) if name in CODED else ())):
            for case, (training, options) in CASES.items():
                if case == "closed form" and structure == "subset":
                    continue
                start = time.perf_counter()
                error = round(100 * wrong(name, structure, training, options), 2)
                seconds = round(time.perf_counter() - start, 1)
                results.append({"data": name, "structure": structure, "case": case, "error": error, "seconds": seconds})
                print(results[-1], flush=True)
    report = {"provenance": provenance(time.perf_counter() - began), "machine": platform.machine(), "results": results}
    kept = {"first_rule": before["first_rule"]} if "first_rule" in before else {}
    write_report(FILE, {"command": " ".join(["python -m experiments.defaults", *sys.argv[1:]]), **report, **kept})


if __name__ == "__main__":
    main()
