"""Latent trees at their best, and likelihood against bits, on the density data sets of `latent_trees.py`.

    python benchmarks/latent_front.py tune --models DIR --only msnbc --hidden-states 64 --components 2 --smoothing 0.1
    python benchmarks/latent_front.py best --models DIR
    python benchmarks/latent_front.py front --models DIR --only nltcs plants
    python benchmarks/latent_front.py learn-ac --only nltcs plants

`tune` learns circuits with some settings and keeps them, with the likelihood of the validation rows. `best` takes, for
each data set, the circuit that is best on validation rows, and the best one of at most 150,000 edges, and looks at the
test rows. `front` learns a tree with 16 states, cuts it to 40 and 15 % of its edges, and goes on with EM through the
quantiser, to a few levels; `tie` without EM is measured beside it. `learn-ac` learns circuits of LearnAC at two prices,
for a limited time, and ties their parameters. Bits are those of the parameters, 32 each where they are not tied.
`python -m experiments.page` draws the picture and writes the tables (docs/results_circuits.md).
"""

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness import provenance
from latent_trees import NAMED, OTHERS, figures, parts

from tinybayes import Circuit, Dataset, load, model_cost, save, tie
from tinybayes.learn.circuits.latent_rounds import Rounds
from tinybayes.learn.circuits.latent_tree import begin, finish
from tinybayes.learn.circuits.learn_ac import learn_circuit
from tinybayes.learn.circuits.options import LatentOptions

OUTPUT = Path(__file__).parent / "results" / "latent_front.json"
LIMIT = 150_000  # edges
SHARES = {1.0: (16,), 0.4: (4, 8, 16, 32), 0.15: (16,)}  # edges that are left, and levels of the parameters
TRIED = (
    *("hidden_states", "components", "smoothing", "epochs", "batch_size", "last_step", "seed"),
    *("restarts", "average"),
)
PRICES, SECONDS = (0.1, 1.0), 20.0  # of LearnAC
Record = dict[str, Any]


def read() -> Record:
    """Return what has been measured."""
    return json.loads(OUTPUT.read_text()) if OUTPUT.exists() else {}


def write(part: str, keep: Any, new: list[Record]) -> None:
    """Replace the records of a part that `keep` refuses by new ones."""
    found = read()
    found[part] = [one for one in found.get(part, []) if keep(one)] + new
    found |= provenance(["jax", "numpy"]) | {"command": "python benchmarks/latent_front.py"}
    OUTPUT.write_text(json.dumps(found, indent=1) + "\n")
    for one in new:
        print(one, flush=True)


def tune(name: str, models: Path, options: LatentOptions) -> None:
    """Learn one circuit, keep it and the likelihood of the validation rows."""
    train, validation, _ = parts(name)
    keep(name, models, options, train, *begin(train, options, validation))


def keep(name: str, models: Path, options: LatentOptions, train: Dataset, rounds: Rounds, trained: Any) -> None:
    """Keep a circuit, also cut to the limit of edges, and the likelihoods of the validation rows."""
    models.mkdir(parents=True, exist_ok=True)
    forms = [("whole", trained)]
    if rounds.edges(trained.tables) > LIMIT:
        forms.append(("cut", rounds.within(trained, LIMIT)))
    settings = {key: value for key, value in asdict(options).items() if key in TRIED}
    for form, one in forms:
        circuit = finish(train, rounds, one).circuit
        record = {"data": name, **settings, "form": form, "validation": round(one.validation_log_likelihood, 4)}
        file = "-".join(str(part) for part in (name, *settings.values(), form)) + ".tb"
        save(circuit, models / file)
        write("tuned", lambda old, file=file: old["file"] != file, [record | {"edges": circuit.n_edges, "file": file}])


def best(name: str, models: Path) -> None:
    """Look at the test rows with the circuit that validation rows choose, and with the one of few edges."""
    tried = [one for one in read().get("tuned", []) if one["data"] == name and (models / one["file"]).exists()]
    new = []
    for limit in (None, LIMIT):
        within = [one for one in tried if limit is None or one["edges"] <= limit]
        if within:
            chosen = max(within, key=lambda one: one["validation"])
            circuit = load(models / chosen["file"])
            assert isinstance(circuit, Circuit)
            new.append({**chosen, "limit": limit, "tried": len(within), **figures(circuit, parts(name)[2])})
    write("best", lambda old: old["data"] != name, new)


def front(name: str, models: Path) -> None:
    """Learn, cut and quantise a tree with the defaults; choose nothing. It also counts as tuned."""
    train, validation, test = parts(name)
    options = LatentOptions()
    rounds, trained = begin(train, options, validation)
    keep(name, models, options, train, rounds, trained)
    edges, new = rounds.edges(trained.tables), []
    for share, levels in SHARES.items():
        trained = rounds.within(trained, int(share * edges))
        learned = finish(train, rounds, trained)
        about = {"data": name, "share": share, "hidden_states": options.hidden_states}
        new.append(point(about | {"form": "latent", "levels": None}, learned.circuit, validation, test))
        for count in levels:
            tied = tie(learned.circuit, count, counts=train).model
            new.append(point(about | {"form": "tied", "levels": count}, tied, validation, test))
            coarse = finish(train, rounds, rounds.quantized(trained, count), levels=count)
            new.append(point(about | {"form": "EM", "levels": count}, coarse.circuit, validation, test))
    write("front", lambda old: old["data"] != name, new)


def learn_ac(name: str) -> None:
    """Learn circuits by LearnAC, and tie their parameters."""
    train, validation, test = parts(name)
    new = []
    for price in PRICES:
        grown = learn_circuit(train, edge_price=price, seconds=SECONDS)
        assert grown.circuit is not None
        about = {"data": name, "edge_price": price, "complete": grown.complete}
        new.append(point(about | {"form": "LearnAC", "levels": None}, grown.circuit, validation, test))
        for count in (8, 16, 32):
            if count < model_cost(grown.circuit).parameters:
                tied = tie(grown.circuit, count, counts=train).model
                new.append(point(about | {"form": "LearnAC, tied", "levels": count}, tied, validation, test))
    write("learn_ac", lambda old: old["data"] != name, new)


def point(about: Record, circuit: Circuit, validation: Dataset, test: Dataset) -> Record:
    """Return likelihoods and price."""
    held_out = round(float(circuit.log_likelihood(validation.X).mean()), 4)
    return {**about, "validation": held_out, **figures(circuit, test)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("tune", "best", "front", "learn-ac"))
    parser.add_argument("--only", nargs="+", default=[*NAMED, *OTHERS])
    parser.add_argument("--models", type=Path, default=Path("latent_models"), help="where circuits are kept")
    parser.add_argument("--hidden-states", type=int, nargs="+", default=[16])
    parser.add_argument("--components", type=int, nargs="+", default=[1])
    parser.add_argument("--smoothing", type=float, nargs="+", default=[1.0])
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--last-step", type=float, default=0.01)
    parser.add_argument("--restarts", type=int, default=1, help="their average is taken")
    given = parser.parse_args()
    for name in given.only:
        if given.what == "tune":
            for states in given.hidden_states:
                for components in given.components:
                    for smoothing in given.smoothing:
                        settings = {"hidden_states": states, "components": components, "smoothing": smoothing}
                        more = {"epochs": given.epochs, "batch_size": given.batch_size, "last_step": given.last_step}
                        more |= {"restarts": given.restarts, "average": given.restarts > 1}
                        tune(name, given.models, LatentOptions(**settings, **more))
        elif given.what == "best":
            best(name, given.models)
        elif given.what == "front":
            front(name, given.models)
        else:
            learn_ac(name)


if __name__ == "__main__":
    main()
