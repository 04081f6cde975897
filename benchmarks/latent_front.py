"""Latent trees at their best, and likelihood against bits, on the density data sets of `latent_trees.py`.

    python benchmarks/latent_front.py tune --models DIR --only msnbc book
    python benchmarks/latent_front.py best --models DIR
    python benchmarks/latent_front.py front --models DIR --only nltcs plants
    python benchmarks/latent_front.py quantised --only nltcs plants
    python benchmarks/latent_front.py learn-ac --only nltcs plants

`tune` learns circuits with the settings of `latent_front.toml` and keeps them, with the likelihood of the validation
rows. `best` takes, for each data set, the circuit that is best on validation rows, and the best one of at most 150,000
edges, and looks at the test rows; `tune` ends with it, too. A circuit that was the best before and is not at hand
remains, unless it is beaten on validation rows. `merge` takes over what was measured elsewhere with `--output`. `front`
learns a tree with 16 states, cuts it to 40 and 15 % of its edges, and goes on with EM through the quantiser, to a few
levels; `tie` without EM is measured beside it. `quantised` learns the best circuit of at most 150,000 edges again and
does the same with it, for 16 and 32 levels. `learn-ac` learns circuits of LearnAC at two prices, for a limited time,
and ties their parameters. Bits are those of the parameters, 32 each where they are not tied.
`python -m experiments.page` draws the picture and writes the tables (docs/results_circuits.md).
"""

import argparse
import json
import time
import tomllib
from collections.abc import Callable
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
from tinybayes.learn.training.engine import find_device

OUTPUT = Path(__file__).parent / "results" / "latent_front.json"
PLAN = Path(__file__).with_suffix(".toml")
LIMIT = 150_000  # edges
CUT = 10 * LIMIT  # what has more edges is not cut to the limit: too much would be lost
SHARES = {1.0: (16,), 0.4: (4, 8, 16, 32), 0.15: (16,)}  # edges that are left, and levels of the parameters
LEVELS = (32, 16)  # of the best circuits within the limit
TRIED = (
    *("hidden_states", "components", "smoothing", "epochs", "batch_size", "last_step", "seed"),
    *("restarts", "average"),
)
PRICES, SECONDS = (0.1, 1.0), 20.0  # of LearnAC
Record = dict[str, Any]


class Store:
    """What has been measured, in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, part: str) -> list[Record]:
        """Return the records of a part."""
        return self.all().get(part, [])

    def write(self, part: str, keep: Callable[[Record], bool], new: list[Record]) -> None:
        """Replace the records of a part that `keep` refuses by new ones."""
        content = self.all()
        content[part] = [one for one in content.get(part, []) if keep(one)] + new
        content |= provenance(["jax", "numpy"]) | {"command": "python benchmarks/latent_front.py"}
        self.path.write_text(json.dumps(content, indent=1) + "\n")
        for one in new:
            print(one, flush=True)

    def all(self) -> Record:
        """Return everything in the file."""
        return json.loads(self.path.read_text()) if self.path.exists() else {}


def tune(store: Store, name: str, models: Path) -> None:
    """Learn the circuits of the plan, and look at the test rows with the best one."""
    train, validation, _ = parts(name)
    for setting in tomllib.loads(PLAN.read_text())["tried"]:
        if setting.pop("data") == name:
            options = LatentOptions(**setting, average=setting.get("restarts", 1) > 1)
            keep(store, name, models, options, train, validation)
    best(store, name, models)


def keep(
    store: Store, name: str, models: Path, options: LatentOptions, train: Dataset, validation: Dataset
) -> tuple[Rounds, Any]:
    """Learn and keep a circuit, also cut to the limit of edges, and the likelihoods of the validation rows."""
    began = time.perf_counter()
    models.mkdir(parents=True, exist_ok=True)
    rounds, trained = begin(train, options, validation)
    forms = [("whole", trained)]
    if LIMIT < rounds.edges(trained.tables) <= CUT:
        forms.append(("cut", rounds.within(trained, LIMIT)))
    settings = {key: value for key, value in asdict(options).items() if key in TRIED}
    for form, one in forms:
        circuit = finish(train, rounds, one).circuit
        # In double precision: matrices are multiplied with fewer digits on a GPU.
        value = round(float(circuit.log_likelihood(validation.X).mean()), 4)
        file = "-".join(str(part) for part in (name, *settings.values(), form)) + ".tb"
        save(circuit, models / file)
        record = {"data": name, **settings, "form": form, "validation": value, "edges": circuit.n_edges, "file": file}
        record |= {"seconds": round(time.perf_counter() - began, 1), "device": find_device(None).device_kind}
        store.write("tuned", lambda old, file=file: old["file"] != file, [record])
    return rounds, trained


def best(store: Store, name: str, models: Path) -> None:
    """Look at the test rows with the circuit that validation rows choose, and with the one of few edges."""
    own = [one for one in store.read("tuned") if one["data"] == name]
    before = [one for one in store.read("best") if one["data"] == name]
    new = []
    for limit in (None, LIMIT):
        tried = [one for one in own if limit is None or one["edges"] <= limit]
        chosen = max(tried, key=lambda one: one["validation"], default=None)
        known = next((one for one in before if one["limit"] == limit), None)
        if chosen is None or (known is not None and known["validation"] >= chosen["validation"]):
            new += [known | {"tried": len(tried)}] if known is not None else []
        else:
            circuit = load(models / chosen["file"])
            assert isinstance(circuit, Circuit)
            new.append({**chosen, "limit": limit, "tried": len(tried), **figures(circuit, parts(name)[2])})
    store.write("best", lambda old: old["data"] != name, new)


def merge(store: Store, other: Store) -> None:
    """Take over circuits that were learned elsewhere, and the best of both."""
    made = {key: value for key, value in other.all().items() if not isinstance(value, list)}
    store.write("merged", lambda old: old["date"] != made["date"], [made])
    new = other.read("tuned")
    files = {one["file"] for one in new}
    store.write("tuned", lambda old: old["file"] not in files, new)
    for one in other.read("best"):
        name, limit = one["data"], one["limit"]
        known = next((old for old in store.read("best") if (old["data"], old["limit"]) == (name, limit)), None)
        tried = sum(r["data"] == name and (limit is None or r["edges"] <= limit) for r in store.read("tuned"))
        chosen = one if known is None or one["validation"] > known["validation"] else known
        store.write("best", lambda old, one=one: not _same(old, one), [chosen | {"tried": tried}])


def _same(one: Record, other: Record) -> bool:
    return (one["data"], one["limit"]) == (other["data"], other["limit"])


def front(store: Store, name: str, models: Path) -> None:
    """Learn, cut and quantise a tree with the defaults; choose nothing. It also counts as tuned."""
    train, validation, test = parts(name)
    options = LatentOptions()
    rounds, trained = keep(store, name, models, options, train, validation)
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
    store.write("front", lambda old: old["data"] != name, new)


def quantised(store: Store, name: str, models: Path) -> None:
    """Learn the best circuit within the limit of edges again, and go on through the quantiser; choose nothing."""
    train, validation, test = parts(name)
    best_one = next(one for one in store.read("best") if (one["data"], one["limit"]) == (name, LIMIT))
    options = LatentOptions(**{key: best_one[key] for key in TRIED if best_one.get(key) is not None})
    rounds, trained = begin(train, options, validation)
    if rounds.edges(trained.tables) > LIMIT:
        trained = rounds.within(trained, LIMIT)
    about = {"data": name, "limit": LIMIT, "hidden_states": options.hidden_states}
    learned = finish(train, rounds, trained)
    new = [point(about | {"form": "latent", "levels": None}, learned.circuit, validation, test)]
    for count in LEVELS:
        coarse = finish(train, rounds, rounds.quantized(trained, count), levels=count)
        new.append(point(about | {"form": "EM", "levels": count}, coarse.circuit, validation, test))
    store.write("quantised", lambda old: old["data"] != name, new)


def learn_ac(store: Store, name: str) -> None:
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
    store.write("learn_ac", lambda old: old["data"] != name, new)


def point(about: Record, circuit: Circuit, validation: Dataset, test: Dataset) -> Record:
    """Return likelihoods and price."""
    held_out = round(float(circuit.log_likelihood(validation.X).mean()), 4)
    return {**about, "validation": held_out, **figures(circuit, test)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("tune", "best", "merge", "front", "quantised", "learn-ac"))
    parser.add_argument("files", type=Path, nargs="*", help="results to merge")
    parser.add_argument("--only", nargs="+", default=[*NAMED, *OTHERS])
    parser.add_argument("--models", type=Path, default=Path("latent_models"), help="where circuits are kept")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    given = parser.parse_args()
    store = Store(given.output)
    if given.what == "merge":
        for file in given.files:
            merge(store, Store(file))
        return
    for name in given.only:
        if given.what == "learn-ac":
            learn_ac(store, name)
        else:
            {"tune": tune, "best": best, "front": front, "quantised": quantised}[given.what](store, name, given.models)


if __name__ == "__main__":
    main()
