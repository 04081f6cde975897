"""A small directory as a search writes it, made of real models of handwritten digits."""

import json
from dataclasses import asdict

import numpy as np
from sklearn.datasets import load_digits

from tinybayes import learn_circuit, learn_classifier, quantize, save, tie
from tinybayes.cost import model_cost
from tinybayes.deploy.price import program_cost
from tinybayes.infer import predict_codes
from tinybayes.infer.evaluate import page_figures
from tinybayes.infer.explain import explained_rows
from tinybayes.model import Cuts, Dataset, Fixed, NeuralNet, Variable
from tinybayes.model.neural_net import Inputs, Layer

PROGRAM = ("flash", "ram", "stack", "instructions", "microseconds")
HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"


def digits(names=None):
    """Return training and test rows: 64 pixels of 4 shades, and the digit."""
    found = load_digits()
    names = names or [f"pixel_{row}_{column}" for row in range(8) for column in range(8)]
    variables = tuple(Variable.from_encoding(name, Cuts([4, 8, 12])) for name in names)
    X = np.minimum(found.data // 4, 3).astype(np.int8)
    data = Dataset(variables, Variable("digit", tuple("0123456789")), X, found.target)
    order = np.random.default_rng(0).permutation(len(data))
    return data.rows(order[:1200]), data.rows(order[1200:])


def linear_net(data, bits=4):
    """A neural net of one layer whose weights are the rounded means of the classes."""
    means = np.array([data.X[data.y == label].mean(axis=0) for label in range(data.target.cardinality)]).T
    centred = means - means.mean(axis=1, keepdims=True)
    top = 2**bits - 1
    codes = np.clip(np.rint((centred / 1.5 + 1) / 2 * top), 0, top).astype(np.uint8)
    weights = 2 * codes.astype(int) - top
    bias = -(((means**2).sum(axis=0) / 2) * top / 1.5).round().astype(int)
    features = np.arange(len(data.variables))
    inputs = Inputs(features, np.full(64, -1), np.ones(64, dtype=int), np.zeros(64, dtype=int))
    assert weights.shape == (64, 10)
    return NeuralNet(data.variables, data.target, inputs, (Layer(codes, bits, bias),), 1.5 / top)


def hidden_net(data, units=16, bits=2):
    """The same behind a layer of random units: not good, but of the form that deeper nets have."""
    random = np.random.default_rng(1)
    inputs = linear_net(data).inputs
    first = Layer(random.integers(0, 2**bits, (64, units)), bits, np.zeros(units, dtype=int), "sign")
    last = Layer(random.integers(0, 2**bits, (units, 10)), bits, np.zeros(10, dtype=int))
    return NeuralNet(data.variables, data.target, inputs, (first, last), 0.05)


def models(train):
    """Return (family, label, settings, model), one of each kind and several networks."""
    naive = learn_classifier(train, structure="naive")
    tree = learn_classifier(train, structure="chow-liu")
    found = [("naive", "naive Bayes, floats", {"structure": "naive", "bits": 32}, naive)]
    found += [
        ("naive", f"naive Bayes, {a + b} bits", {"structure": "naive", "bits": a + b}, quantize(naive, Fixed(a, b)))
        for a, b in [(3, -1), (3, 0), (3, 1), (3, 3)]
    ]
    found.append(("tan", "tan, floats", {"structure": "chow-liu", "bits": 32}, tree))
    found += [
        ("tan", f"tan, {a + b} bits", {"structure": "chow-liu", "bits": a + b}, quantize(tree, Fixed(a, b)))
        for a, b in [(3, 0), (3, 1), (3, 3)]
    ]
    found.append(("tied", "tied tan, 8 levels", {"levels": 8}, tie(tree, 8).model))
    found.append(
        (
            "circuit",
            "circuit, 2,000 edges",
            {"edge_price": 0.5},
            learn_circuit(train, edge_price=0.5, max_edges=2000).circuit,
        )
    )
    found.append(("dense", "linear net, 4 bits", {"layers": [10], "bits": 4}, linear_net(train)))
    found.append(("dense", "net with 16 units, 2 bits", {"layers": [16, 10], "bits": 2}, hidden_net(train)))
    return found


def write_explored(directory, train, test):
    """Write front.json and models/, with two models whose programs were not priced and whose files are not kept."""
    (directory / "models").mkdir(parents=True)
    entries = []
    half = len(test) // 2
    for number, (family, label, settings, model) in enumerate(models(train)):
        wrong = predict_codes(model, test.X) != test.y
        entry = {"id": str(number), "family": family, "label": label, "settings": settings}
        entry |= {"validation_error": float(wrong[:half].mean()), "test_error": float(wrong[half:].mean())}
        cost = model_cost(model).to_dict()
        entry |= {name: cost[name] for name in ("bits", "bytes", "operations", "multiplications", "parameters")}
        entry |= {name: value for name, value in asdict(program_cost(model)).items() if name in PROGRAM}
        entry |= page_figures(model, test.rows(slice(half, None))) | {"file": f"models/{number}.tb"}
        entry["explanations"] = explained_rows(model, test.rows(slice(half, None)))
        if family == "dense":
            entry["history"] = [[epoch, 0.1 + 0.8 / epoch] for epoch in range(1, 31)]
        if family == "tan":
            entry["boards"] = [
                {"core": "Cortex-M0+", "flash": 9120, "ram": 0, "stack": 96, "instructions": 7421.5},
                {"core": "Cortex-M4", "flash": 8874, "ram": 0, "stack": 88, "instructions": 5210.25},
            ]
        save(model, directory / "models" / f"{number}.tb")
        entries.append(entry)
    for family, wrong, bits, operations in [("tree", 0.19, 30_000, 12), ("forest", 0.05, 900_000, 900)]:
        entry = {"id": f"b-{family}", "family": family, "label": f"{family}, tables only", "settings": {}, "file": None}
        entry |= {"validation_error": wrong, "test_error": wrong + 0.01, "bits": bits, "bytes": bits // 8}
        entry |= {"flash": bits // 8, "tables_only": True}
        entries.append(entry | {"operations": operations, "multiplications": 0, "parameters": bits // 40})
    mark_front(entries)
    for entry in entries:
        if not entry["on_front"] and entry["file"] and entry["family"] != "circuit":  # one of each kind stays
            (directory / entry["file"]).unlink()
            entry["file"] = None
    front = {
        "title": "Handwritten digits: what accuracy costs",
        "command": "tinybayes explore digits.csv --target digit --budget-parameters 3825B --seed 7 -o digits",
        "seed": 7,
        "created": "2025-01-02T03:04:05+00:00",
        "data": {"name": "digits", "rows": 1797, "features": 64, "classes": 10, "target": "digit"},
        "budget": {"bits": 30_600, "operations": None, "error": None, "core": "cortex-m0+"},
        "chosen": next(entry["id"] for entry in entries if entry["label"] == "tan, 3 bits"),  # the best within it
        "provenance": {"tinybayes": "0.1.0", "python": "3.12"},
        "models": entries,
    }
    (directory / "front.json").write_text(json.dumps(front))
    return front


def mark_front(entries):
    """Mark what no other entry is at least as good as in error, bits and operations, and better in one."""
    keys = ("validation_error", "bits", "operations")
    prices = np.array([[entry[key] for key in keys] for entry in entries])
    for entry, price in zip(entries, prices, strict=True):
        entry["on_front"] = not ((prices <= price).all(axis=1) & (prices < price).any(axis=1)).any()
